"""Stage 2: check sources and turn them into documents and diagnostics."""
