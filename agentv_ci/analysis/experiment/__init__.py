"""Experiments: arms compared trial by trial."""
