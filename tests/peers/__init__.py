"""Real peers: agents from npm and the LiteLLM proxy. Opt-in: `make test-peers` installs them and names them."""
