"""Stage 2: a source becomes a document and everything that is wrong with it."""
