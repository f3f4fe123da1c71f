"""Hostile files of 1 MB at every door: none costs more than 150 MiB and five seconds of processor time."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.action import events
from tests.support import REPOSITORY, clean_environment, write

pytestmark = pytest.mark.slow

SIZE = 1_000_000
MOST = {"any": (5.0, 150.0), "entries": (20.0, 300.0), "server": (15.0, 250.0)}
"""Seconds of processor time, and MiB: for any file, a document of as many entries as fit into it, and a server."""
MEASURED = """
import json, os, resource, subprocess, sys
asked = open("asked") if os.path.exists("asked") else subprocess.DEVNULL
outputs = {"stdin": asked, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
done = subprocess.run(sys.argv[1:], timeout=240, **outputs)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, done.stderr.decode()[-500:]]))
"""
"""Runs a command from a small process: memory before `exec` counts as that of the program."""
SERVED = """
import json, resource, subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=-1, stdout=-1, stderr=open("stderr", "wb"))
for line in open("asked", "rb"):
    server.stdin.write(line)
    server.stdin.flush()
    answer = server.stdout.readline() if b'"id"' in line else b""
server.stdin.close()
code = server.wait(60)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, answer.decode()[:500]]))
"""
"""Does the same with a server, which it asks one question after another, as the protocol wants."""
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}


def repeated(text: str, before: str = "", after: str = "") -> str:
    """Return a text of 1 MB."""
    return before + text * ((SIZE - len(before) - len(after)) // len(text)) + after


def numbered(text: str, before: str = "") -> str:
    """Return a text of 1 MB of lines with different numbers."""
    number = (SIZE - len(before)) // (len(text.format(100_000)))
    return before + "".join(text.format(each) for each in range(number))


EVAL = "$schema: agentv-eval-v2\n"
YAML = {
    "unknown keys of a case": numbered("   k{}: 1\n", f"{EVAL}evalcases:\n - id: a\n"),
    "the same key": repeated("k: 1\n", EVAL),
    "deep lists": EVAL + "x: " + "[" * (SIZE // 2) + "]" * (SIZE // 2),
    "deep mappings": repeated("{a: ", EVAL + "x: "),
    "aliases": EVAL
    + "a: &a [x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1 or str()}'] * 9)}]\n" for n in range(1, 40)),
    "many anchors": numbered("- &k{} x\n", "x:\n"),
    "quotes": repeated("'", EVAL + "x: "),
    "a long line": repeated("x ", EVAL + "description: "),
    "colons": repeated(": ", EVAL),
    "tabs": repeated("\t", EVAL + "x:\n"),
    "a long number": repeated("9", EVAL + "x: "),
    "comments": repeated("#\n", EVAL),
    "templates": repeated("{{ a }}", f"{EVAL}evalcases:\n - id: a\n   input: '", "'\n"),
}
ENTRIES = {
    "empty cases": repeated(" - {}\n", f"{EVAL}evalcases:\n"),
    "texts for cases": repeated(" - a\n", f"{EVAL}evalcases:\n"),
    "nothing for cases": repeated(" -\n", f"{EVAL}evalcases:\n"),
    "aliases of a case": repeated(" - *a\n", f"{EVAL}x-a: &a {{id: a, input: x, expected_outcome: x}}\nevalcases:\n"),
    "tags": repeated("a,", f"{EVAL}evalcases:\n - {{id: a, input: x, expected_outcome: x, tags: [", "]}\n"),
    "wrong evaluators": repeated("{},", f"{EVAL}evalcases:\n - {{id: a, input: x, evaluators: [", "]}\n"),
    "evaluators": repeated("is_json,", f"{EVAL}evalcases:\n - {{id: a, input: x, evaluators: [", "]}\n"),
    "cases": numbered(" - {{id: c{}, input: x, expected_outcome: x, expected: x}}\n", f"{EVAL}evalcases:\n"),
}
"""Documents of little but entries, which take their time and memory."""
TESTS = "tests: [{vars: {x: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, y: [1, 2, 3]}, assert: [{type: contains, value: a}]}]\n"
PROMPTFOO = f"providers: [openai:gpt-4o]\n{TESTS}"
LOOP = "{% for a in x %}{% for b in x %}{% for c in x %}{% for d in x %}{% for e in x %}{% for f in x %}"
TEMPLATES = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}{{ x }}",
    "loops over a text": LOOP + "{% endfor %}" * 6 + "{{ x }}",
    "products": "{% if true %}{{ 'x' * 9999999999 }}{% endif %}{{ x }}",
    "powers": "{% if true %}{{ 9 ** 99999999 }}{% endif %}{{ x }}",
    "format": "{% if true %}{{ '%9999999999d' | format(1) }}{% endif %}{{ x }}",
    "center": "{% if true %}{{ x | center(9999999999) }}{% endif %}{{ x }}",
    "macros": "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}{{ x }}",
    "doubled": "{% set s = x %}" + "{% set s = s ~ s %}" * 40 + "{{ s }}{{ x }}",
    "many loops": "{% for a in x %}{% endfor %}" * 30_000 + "{{ x }}",
    "replaced": "{% if true %}{{ x" + " | replace('a', x)" * 40 + " }}{% endif %}{{ x }}",
}
LISTS = ", ".join(f"v{n}: [a, b, c, d, e, f, g, h, i, j]" for n in range(12))
SETS = "  - vars: {x: [a, b, c, d, e, f, g, h, i, j]}\n"
CONFIGS = {
    **{name: f"prompts: [{json.dumps(text)}]\n{PROMPTFOO}" for name, text in TEMPLATES.items()},
    "combinations": f"prompts: [x]\nproviders: [echo]\ntests: [{{vars: {{{LISTS}}}}}]\n",
    "combinations with defaults": f"prompts: [x]\nproviders: [echo]\ndefaultTest: {{vars: {{y: [{'a, ' * 5_000}]}}}}\n"
    f"tests:\n{SETS * 1_000}",
    "scenarios": f"prompts: [x]\nproviders: [echo]\nscenarios:\n- config:\n{SETS * 1_000}  tests:\n{SETS * 1_000}",
    "tests in itself": "prompts: [x]\nproviders: [echo]\ntests: [file://tests.yaml]\n",
}
LINES = {
    "empty objects": repeated("{}\n"),
    "empty lists": repeated("[]\n"),
    "unknown keys": "{" + ",".join(f'"k{n}":1' for n in range(SIZE // 11)) + "}\n",
    "deep lists": '{"a":' + "[" * (SIZE // 2) + "]" * (SIZE // 2) + "}\n",
    "deep objects": '{"a":' * (SIZE // 8) + "1" + "}" * (SIZE // 8) + "\n",
    "a long number": repeated("9", '{"a":', "}\n"),
    "a long text": repeated("x", '{"eval_id":"', '"}\n'),
    "line breaks": repeated("\n"),
    "one list": repeated("{},", '{"results":[', "{}]}\n"),
    "escapes": repeated("\\u0000", '{"a":"', '"}\n'),
}
XML = {
    "deep": "<a>" * (SIZE // 7) + "</a>" * (SIZE // 7),
    "deep suites": "<testsuite>" * (SIZE // 25) + "<testcase/>" + "</testsuite>" * (SIZE // 25),
    "attributes": "<testsuite " + " ".join(f'k{n}="1"' for n in range(SIZE // 12)) + "/>",
    "entities": '<!DOCTYPE a [<!ENTITY a0 "aaaaaaaaaa">'
    + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    + "]><testsuite><testcase name='&a11;'/></testsuite>",
}
RUN = {
    "exit_code": 1,
    "verdict": "fail",
    "reason": "x",
    "hint": None,
    "path": None,
    "line": None,
    "use": None,
    "validate_only": False,
    "narrowed": False,
    "run_id": 5,
    "root": "/x",
}
PUBLISHED = {
    f"{name}: {key} of {text}": (name, repeated(f"{text},", f'{{"{key}":[', f"{text}]}}"))
    for name, keys in {
        "diagnostics.json": ["files"],
        "proof.json": ["cases", "findings"],
        "plan-diff.json": ["added"],
    }.items()
    for key in keys
    for text in ("{}", '{"a":1}', "[]", "1")
} | {f"results: {name}": ("results.jsonl", text) for name, text in LINES.items()}


def archive(size: int, parts: int = 1, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return an archive whose samples are much larger than it is."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as file:
        file.writestr("header.json", "{}")
        for part in range(parts):
            file.writestr(f"samples/{part}.json", " " * (size // parts))
    return packed.getvalue()


def cost(folder: Path, *words: str, most: str = "any", measured: str = MEASURED, **env: str) -> str:
    """Run a command, and require that it ends, says why if it must, and costs no more than a hostile file may.

    Returns what it says, in part.
    """
    command = [sys.executable, "-c", measured, sys.executable, "-m", "agentv_ci", *words]
    path = {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, cwd=folder, env=clean_environment(path | env), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    code, cpu_s, mib, said = json.loads(done.stdout)
    assert code in range(7), said
    assert (cpu_s < MOST[most][0], mib < MOST[most][1]) == (True, True), f"{cpu_s:.1f} s, {mib:.0f} MiB: {said}"
    return str(said)


def asked_of_server(folder: Path, tool: str, **arguments: object) -> None:
    """Ask a tool of a server; see `cost`."""
    calls = [("initialize", CLIENT), ("tools/call", {"name": tool, "arguments": arguments})]
    lines = [
        {"jsonrpc": "2.0", "id": number, "method": name, "params": given} for number, (name, given) in enumerate(calls)
    ]
    lines.insert(1, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    write(folder, {"asked": "".join(f"{json.dumps(each)}\n" for each in lines)})
    assert '"result"' in cost(folder, "mcp", most="server", measured=SERVED)


@pytest.mark.parametrize("name", YAML)
def test_validate(name: str, repository: Path) -> None:
    write(repository, {"x.yaml": YAML[name]})
    cost(repository, "validate", "x.yaml")


@pytest.mark.parametrize("name", ENTRIES)
def test_validate_many_entries(name: str, repository: Path) -> None:
    write(repository, {"x.yaml": ENTRIES[name]})
    cost(repository, "validate", "x.yaml", most="entries")


def test_import_does_not_search_beside_the_repository_or_through_links(repository: Path) -> None:
    for name in ("a", "b"):
        (repository / name).symlink_to(".")
    write(repository, {"x.yaml": PROMPTFOO.replace(TESTS, "tests: ['file://**/*.json', 'file:///**/*.json']\n")})
    cost(repository, "import", "x.yaml", "--from", "promptfoo", "--out", "out")


@pytest.mark.parametrize("name", CONFIGS)
def test_import(name: str, repository: Path) -> None:
    write(repository, {"x.yaml": CONFIGS[name], "tests.yaml": "- file://tests.yaml\n- file://tests.yaml\n"})
    cost(repository, "import", "x.yaml", "--from", "promptfoo", "--out", "out")


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("kind", ["promptfoo", "jsonl", "inspect"])
def test_adopt(kind: str, name: str, repository: Path) -> None:
    write(repository, {"x.json": LINES[name]})
    cost(repository, "adopt", "x.json", "--from", kind)


@pytest.mark.parametrize("name", XML)
def test_adopt_xml(name: str, repository: Path) -> None:
    write(repository, {"x.xml": XML[name]})
    cost(repository, "adopt", "x.xml", "--from", "junit")


@pytest.mark.parametrize("parts", [1, 1_000])
def test_adopt_an_archive(parts: int, repository: Path) -> None:
    (repository / "x.eval").write_bytes(archive(600 * 1024 * 1024, parts))
    cost(repository, "adopt", "x.eval", "--from", "inspect")


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_adopt_an_archive_that_denies_its_size(compression: int, repository: Path) -> None:
    content = archive(600 * 1024 * 1024, compression=compression)
    claimed = content.replace((600 * 1024 * 1024).to_bytes(4, "little"), (5).to_bytes(4, "little"))
    assert claimed != content
    (repository / "x.eval").write_bytes(claimed)
    cost(repository, "adopt", "x.eval", "--from", "inspect")


@pytest.mark.parametrize("kind", ["promptfoo", "junit", "inspect", "jsonl"])
def test_adopt_does_not_wait_for_a_pipe(kind: str, repository: Path) -> None:
    name = "x.eval" if kind == "inspect" else "x.json"
    os.mkfifo(repository / name)
    cost(repository, "adopt", name, "--from", kind)


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("words", [("report",), ("compare", "x.jsonl"), ("history", "add")], ids=lambda words: words[0])
def test_results(words: tuple[str, ...], name: str, repository: Path) -> None:
    write(repository, {"x.jsonl": LINES[name], "x.report.json": LINES[name]})
    cost(repository, *words, "x.jsonl")


DEVICES = [
    *(("eval", "x.json"), ("eval", "ok.yaml", "--baseline", "x.json"), ("compile", "ok.yaml", "--diff", "x.json")),
    *(
        ("compare", "x.json", "x.json"),
        ("report", "y.jsonl"),
        ("rescore", "x.jsonl"),
        ("baseline", "accept", "x.jsonl"),
    ),
    *(("eval", "ok.yaml", "--failed", "x.jsonl", "--out", "o.jsonl")),
]


@pytest.mark.parametrize("words", DEVICES, ids=" ".join)
def test_link_to_a_device_is_not_read(words: tuple[str, ...], repository: Path) -> None:
    """A checkout can have one."""
    for name in ("x.json", "x.jsonl", "y.report.json"):
        (repository / name).symlink_to("/dev/zero")
    case = "{id: a, input: x, expected_outcome: x, expected: x, evaluators: [is_json]}"
    targets = "$schema: agentv-targets-v2.2\ntargets: [{name: default, provider: mock}]\n"
    write(repository, {"ok.yaml": f"{EVAL}evalcases: [{case}]\n", "targets.yaml": targets, "y.jsonl": ""})
    cost(repository, *words)


@pytest.mark.parametrize("name", YAML)
@pytest.mark.parametrize("tool", ["validate", "list_cases", "estimate"])
def test_mcp_documents(tool: str, name: str, repository: Path) -> None:
    write(repository, {"x.yaml": YAML[name]})
    paths = {"paths": ["x.yaml"]}
    asked_of_server(repository, tool, **(paths if tool == "validate" else {"cases": paths}))


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("tool", ["report", "compare"])
def test_mcp_results(tool: str, name: str, repository: Path) -> None:
    write(repository, {"x.jsonl": LINES[name], "x.report.json": LINES[name]})
    arguments = {"results": "x.jsonl"} if tool == "report" else {"base": "x.jsonl", "head": "x.jsonl"}
    asked_of_server(repository, tool, **arguments)


@pytest.mark.parametrize("name", PUBLISHED)
def test_publish(name: str, repository: Path) -> None:
    file, text = PUBLISHED[name]
    write(
        repository,
        {"r/run.json": json.dumps(RUN), f"r/{file}": text, "e.json": json.dumps(events.workflow_run("a" * 40))},
    )
    if file == "results.jsonl":
        write(repository, {"r/results.report.json": text})
    env = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "workflow_run", "GITHUB_EVENT_PATH": "e.json"}
    env |= {"GITHUB_REPOSITORY": "acme/demo", "GITHUB_RUN_ID": "9", "GITHUB_API_URL": "http://127.0.0.1:9"}
    words = (
        "github",
        "publish",
        "--results-dir",
        "r",
        "--annotations",
        "none",
        "--fail-on",
        "never",
        "--comment",
        "never",
    )
    cost(repository, *words, **env, GITHUB_WORKFLOW="C", GITHUB_JOB="c")
