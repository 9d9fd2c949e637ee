"""Agent programs that exist, run direct and through the proxy, and compared. `make agents`."""
