"""The outcomes of cases."""
