"""Results of other tools → results, which every command reads."""
