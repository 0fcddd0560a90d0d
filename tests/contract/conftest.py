from tests.contract.servers import servers_are_stopped

__all__ = ["servers_are_stopped"]
