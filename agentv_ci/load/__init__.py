"""Stage 1: read files into sources, with the problems of the files themselves."""
