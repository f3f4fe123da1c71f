"""What agent providers share: programs, the files they read, the events they print."""
