"""Stage 1: files become data, with what is wrong with them as files."""
