"""Stage 7: what a run came to, published on GitHub."""
