"""Guards: every list that exists twice is compared, and the failure names the command that mends it."""
