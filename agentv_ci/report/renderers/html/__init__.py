"""The parts of the HTML report: what it has of a run, and the templates that show it."""
