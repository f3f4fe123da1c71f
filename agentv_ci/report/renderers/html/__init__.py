"""The HTML report: its data and its templates."""
