"""Plugins of agentv-ci: an evaluator, a provider and a reporter."""
