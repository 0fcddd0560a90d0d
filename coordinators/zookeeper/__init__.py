"""Coordination through ZooKeeper, looked up on every request or watched. Kafka's tree, one session per broker."""
