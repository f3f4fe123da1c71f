"""Stage 7: publish a finished run on GitHub."""
