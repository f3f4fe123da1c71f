"""What a run came to, in the forms that people and programs read."""
