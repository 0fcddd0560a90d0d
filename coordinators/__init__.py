"""Coordination as a plug-in: who is alive, who leads which partition at which epoch, what topics exist,
where consumers are. `api.py` is the contract; `registry.py` names the back ends."""
