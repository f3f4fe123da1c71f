#!/usr/bin/env bash
# Install this checkout of agentv-ci into its own environment, separate from the job's Python and workspace.
# PYTHON is the interpreter. Sets the step's output `command`: a program that runs agentv-ci.
set -euo pipefail

if [ "${RUNNER_OS:-}" = Windows ]; then
  echo "::error::agentv-ci runs on Linux and macOS; use a runner such as ubuntu-latest"
  exit 1
fi

# Nothing in the workspace, such as an argparse.py of a pull request, may be imported: -I excludes the working
# directory, and unsetting these keeps other paths from pip's child process.
unset PYTHONPATH PYTHONHOME

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d "$RUNNER_TEMP/agentv-ci.XXXXXXXX")
"$PYTHON" -I -m venv --without-pip "$folder/venv"

install() {
  "$PYTHON" -I -m pip --python "$folder/venv/bin/python" --quiet --disable-pip-version-check \
    install --no-deps --no-compile "$@"
}
echo "::group::Install agentv-ci"
install --require-hashes -r "$checkout/requirements.lock"
install --no-index --no-build-isolation "$checkout"
echo "::endgroup::"

mkdir "$folder/bin"
cat > "$folder/bin/agentv-ci" <<END
#!/bin/sh
exec "$folder/venv/bin/python" -I -m agentv_ci "\$@"
END
chmod +x "$folder/bin/agentv-ci"
echo "command=$folder/bin/agentv-ci" >> "$GITHUB_OUTPUT"
