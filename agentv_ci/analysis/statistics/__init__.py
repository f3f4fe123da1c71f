"""Tests and intervals."""
