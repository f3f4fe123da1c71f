"""The version of agentv-ci, apart so that no module imports the Python interface for it."""

__version__ = "0.1.0"
