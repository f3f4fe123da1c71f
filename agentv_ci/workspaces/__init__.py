"""Workspaces of trials: how they are made and confined, and the clean tree that graders get."""
