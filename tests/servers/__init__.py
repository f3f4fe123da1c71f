"""Servers that stand where the outside world would be, on loopback, and speak its real wire format."""
