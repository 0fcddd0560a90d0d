"""How a client process speaks with a cluster: one module per driver, each with `Producer`, `Consumer` and `Admin`."""
