"""Loopback doubles of APIs, which speak the real wire formats."""
