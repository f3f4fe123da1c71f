"""Stage 5: an answer becomes a grade."""
