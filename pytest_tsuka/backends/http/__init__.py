"""HTTP: connections, addresses, event streams."""
