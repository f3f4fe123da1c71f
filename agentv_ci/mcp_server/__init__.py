"""The server of `agentv-ci mcp`: tools for agents, which see one repository and nothing beside it."""
