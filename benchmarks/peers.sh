#!/bin/sh
# Installs the tools that agentv-ci is compared with, from their registries, into a folder: 1.5 GB. Needs Node.js and npm.
# PYTHON names the interpreter for those in Python.
set -eu
folder=${1:?usage: benchmarks/peers.sh FOLDER}
mkdir -p "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder/npm" agentv@4.42.4 promptfoo@0.121.20

install() { # NAME PACKAGE…
  environment=$folder/$1
  shift
  test -d "$environment" || "${PYTHON:-python3}" -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}
install venv check-jsonschema==0.39.0 ruamel.yaml.clib==0.2.15
install venv-eval inspect_ai==0.3.285 pydantic-evals==2.62.0 openai==3.54.0 aiohttp==3.14.5
