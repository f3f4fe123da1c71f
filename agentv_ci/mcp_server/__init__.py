"""The server of `agentv-ci mcp`: tools for agents, which see nothing but one repository."""
