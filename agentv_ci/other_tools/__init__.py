"""What other tools write."""
