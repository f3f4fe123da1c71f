"""Check, compile, run and score evaluations of AI agents described in YAML."""

__version__ = "0.1.0"
