"""Guards: what exists twice is compared; a failure names the command that fixes it."""
