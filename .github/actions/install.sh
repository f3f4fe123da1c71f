#!/usr/bin/env bash
# Install this checkout of agentv-ci into its own environment, separate from the job's Python and workspace.
# PYTHON is the interpreter. Sets the step's outputs `command`, a program that runs agentv-ci, and `folder`, which holds it.
set -euo pipefail
trap 'echo "::error title=agentv-ci::cannot install agentv-ci; see the log of the step"' ERR

if [ "${RUNNER_OS:-}" = Windows ]; then
  echo "::error::agentv-ci runs on Linux and macOS; use a runner such as ubuntu-latest"
  exit 1
fi

# Nothing in the workspace, such as an argparse.py of a pull request, may be imported: -I excludes the working
# directory, and unsetting these keeps other paths from pip's child process. Of the job's settings for pip, only those
# that say where packages come from are kept.
unset PYTHONPATH PYTHONHOME
for name in "${!PIP_@}"; do
  case $name in
    PIP_INDEX_URL | PIP_EXTRA_INDEX_URL | PIP_TRUSTED_HOST | PIP_CERT | PIP_CLIENT_CERT | PIP_PROXY | PIP_CACHE_DIR) ;;
    PIP_TIMEOUT | PIP_DEFAULT_TIMEOUT | PIP_RETRIES | PIP_FIND_LINKS | PIP_NO_INDEX | PIP_NO_CACHE_DIR) ;;
    *) unset "$name" ;;
  esac
done

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d "$RUNNER_TEMP/agentv-ci.XXXXXXXX")
"$PYTHON" -I -m venv --without-pip "$folder/venv"

install() {
  "$PYTHON" -I -m pip --python "$folder/venv/bin/python" --quiet --disable-pip-version-check \
    install --no-deps --no-compile "$@"
}
echo "::group::Install agentv-ci"
install --only-binary=:all: --require-hashes -r "$checkout/requirements.lock"
install --no-index --no-build-isolation "$checkout"
echo "::endgroup::"

mkdir "$folder/bin"
cat > "$folder/bin/agentv-ci" <<END
#!/bin/sh
exec "$folder/venv/bin/python" -I -m agentv_ci "\$@"
END
chmod +x "$folder/bin/agentv-ci"
# What runs later must be what is installed now: see agentv_ci/cli/action_guard.py.
find "$folder" -type f -exec chmod a-w {} +
printf '%s\n' "command=$folder/bin/agentv-ci" "folder=$folder" >> "$GITHUB_OUTPUT"
