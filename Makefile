# One command for each chore. PYTHON names the interpreter; by default that of .venv, where there is one.
# It is looked up for every recipe, because `tools` may make .venv.
PYTHON ?= $(shell test -x .venv/bin/python && echo .venv/bin/python || echo python3)

.PHONY: help tools dev check format test-fast test test-real mutants test-peers schemas docs golden screenshot prices github-api lock

help:       ## list the chores
	@grep -hE '^[a-z-]+: +##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

dev:        ## install agentv-ci and what its developers need
	$(PYTHON) -m pip install -e '.[dev]'
	$(PYTHON) -m pip install --require-hashes --no-deps -r tests/action/act.lock

# A chore that needs the development tools installs them into .venv when PYTHON does not have them.
tools:
	@$(PYTHON) -c 'import importlinter, mcp, mypy, pytest, ruff' 2> /dev/null || { \
	  echo "installing the development tools into .venv"; \
	  test -x .venv/bin/python || python3 -m venv .venv; \
	  .venv/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'; }

check format test-fast test test-real mutants schemas docs golden: tools

check:      ## lint, types, import rules, schemas fresh: everything but the tests
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) -c "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])"
	$(PYTHON) -m tests.render_schemas --check
	$(PYTHON) -m tests.render_docs --check

format:     ## put the code into shape
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

test-fast:  ## run the tests but for the slow ones, in about a minute
	$(PYTHON) -m pytest -n auto -m "not slow"

test:       ## run the tests with coverage
	$(PYTHON) -m pytest -n auto --cov

test-real:  ## run the tests of act, the browser and clusters, and record what they have passed with
	$(PYTHON) -m pytest -n auto --real

mutants:    ## change random lines and print the changes that no test notices; ARGS=--help
	$(PYTHON) -m tests.mutants $(ARGS)

# What make test-peers installs, about 2 GB.
PEERS ?= .peers
AGENTS = @openai/codex@0.169.0 @anthropic-ai/claude-code@2.1.197 @github/copilot@1.0.102 @google/gemini-cli@0.61.0

test-peers: ## ask real agents (npm) and the LiteLLM proxy through the providers; needs Node 20
	npm install --no-save --no-audit --no-fund --silent --prefix $(PEERS) $(AGENTS)
	test -d $(PEERS)/litellm || $(PYTHON) -m venv $(PEERS)/litellm
	$(PEERS)/litellm/bin/python -m pip install --quiet 'litellm[proxy]==1.106.2'
	AGENTV_CI_PEERS=$(PEERS) $(PYTHON) -m pytest tests/peers

schemas:    ## render schemas/ from the contracts
	$(PYTHON) -m tests.render_schemas

docs:       ## render the tables of docs/ from the code
	$(PYTHON) -m tests.render_docs

golden:     ## rewrite the corpus's expected files; review the diff
	$(PYTHON) -m pytest tests/test_corpus.py --update-golden -q

screenshot: ## write the pictures in docs/ with Debian's chromium, its fonts-noto-color-emoji and GitHub's stylesheet
	$(PYTHON) -m pip install --quiet pillow==13.0.0
	folder=$$(mktemp -d) && npm pack --silent --pack-destination "$$folder" github-markdown-css@5.8.1 && \
	  tar -xzf "$$folder"/*.tgz -C "$$folder" && \
	  $(PYTHON) -m tests.render_screenshot "$$folder/package/github-markdown-light.css" && rm -r "$$folder"

prices:     ## render the table of public prices; review the diff
	$(PYTHON) -m pip install --quiet genai-prices==0.2.3
	$(PYTHON) -m tests.render_prices

github-api: ## cut what the action asks out of GitHub's description of its API; review the diff
	folder=$$(mktemp -d) && npm pack --silent --pack-destination "$$folder" @octokit/openapi@23.0.2 && \
	  tar -xzf "$$folder"/*.tgz -C "$$folder" package/generated/api.github.com.json && \
	  $(PYTHON) -m tests.action.render_github_api "$$folder/package/generated/api.github.com.json" && rm -r "$$folder"

lock:       ## write pylock.toml, what the action installs, and requirements-build.lock, what builds a release
	$(PYTHON) -m pip install --quiet uv==0.13.9
	$(LOCK) --format pylock.toml --output-file pylock.toml pyproject.toml
	printf '%s\n' 'hatchling>=1.27' 'cyclonedx-bom>=7' | $(LOCK) --generate-hashes --output-file requirements-build.lock -

LOCK = $(PYTHON) -m uv pip compile --quiet --universal --python-version 3.11 --no-annotate --custom-compile-command 'make lock'
