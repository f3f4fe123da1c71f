"""Stage 6: what a run came to, in the forms that people and programs read."""
