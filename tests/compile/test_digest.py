"""Digests, and plans that are the same bytes everywhere."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import rfc8785
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agentv_ci.app.compile import Selection, write_plan
from tests.compile.builders import (
    EVAL,
    MOCK,
    Document,
    as_yaml,
    case,
    compile_here,
    contains,
    evals,
    targets,
    text_of,
    write_repository,
)
from tests.support import clean_environment

Repository = dict[str, Any]
Change = Callable[[Repository], None]

GPT = {"name": "default", "provider": "openai", "model": "gpt-5", "api_key": "${{ KEY }}"}
AGENT = {"name": "default", "provider": "cli", "command_template": "agent {PROMPT}"}

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=20).filter(str.strip)


def rich(text: str = "text") -> Repository:
    """A repository whose first case uses everything there is; `text` is what everything says."""
    asked = case(
        "one",
        expected_outcome=text,
        input_messages=[
            {"role": "system", "content": [{"type": "file", "value": "rules.prompt.md"}]},
            {"role": "user", "content": [text, {"type": "file", "value": "question.txt"}]},
        ],
        expected_messages=[
            {"role": "assistant", "tool_calls": [{"tool": "search", "input": {"q": text}}]},
            {"role": "assistant", "content": text},
        ],
        evaluators=[
            contains(text),
            {"name": "r", "type": "regex", "value": "a+"},
            {"name": "j", "type": "llm_judge", "prompt": "./judge.md"},
            {"name": "k", "type": "llm_judge", "prompt": "Is it good?", "judge_target": "strict"},
            {"name": "s", "type": "schema", "schema_file": "schema.json"},
            {"name": "p", "type": "code", "script": "judge.py", "files": ["x.json", "y.json"], "config": {"a": text}},
            {"name": "t", "type": "tool_trajectory", "mode": "any_order", "minimums": {"search": 1}},
            {"name": "u", "type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "search", "input": 1}]},
        ],
    )
    return {
        EVAL: evals(asked, case("two")),
        "evals/rules.prompt.md": f"Rules: {text}",
        "evals/question.txt": f"Question: {text}",
        "evals/judge.md": f"Judge: {text}",
        "evals/judge.py": f"# {text}",
        "evals/x.json": '"x"',
        "evals/y.json": '"y"',
        "evals/schema.json": {"type": "object", "title": text},
        "targets.yaml": targets(
            {**MOCK, "response": text, "judge_target": "judge"},
            {"name": "judge", "provider": "mock", "response": text},
            {"name": "strict", "provider": "mock", "response": text},
            {"name": "other", "provider": "mock", "response": f"Other: {text}"},
        ),
    }


def digest_of(files: Repository) -> str:
    """Return the digest of the case under test: the one whose id begins with `one`."""
    with TemporaryDirectory() as folder:
        plan = compile_here(Path(folder), files)
        (found,) = (each for each in plan.cases if each.id.startswith("one"))
        return found.digest


@cache
def unchanged_digest(text: str) -> str:
    return digest_of(rich(text))


def digests(change: Change, text: str) -> tuple[str, str]:
    """Return the digest before and after a change."""
    changed = rich(text)
    change(changed)
    assert changed != rich(text)
    return unchanged_digest(text), digest_of(changed)


def one(files: Repository) -> Document:
    """The case under test."""
    found: Document = next(each for each in files[EVAL]["evalcases"] if each["id"] == "one")
    return found


def evaluator(files: Repository, name: str) -> Document:
    found: Document = next(each for each in one(files)["evaluators"] if each["name"] == name)
    return found


def target(files: Repository, name: str) -> Document:
    found: Document = next(each for each in files["targets.yaml"]["targets"] if each["name"] == name)
    return found


def in_case(**given: Any) -> Change:
    return lambda files: one(files).update(given)


def in_suite(**given: Any) -> Change:
    return lambda files: files[EVAL].update(given)


def in_evaluator(name: str, /, **given: Any) -> Change:
    return lambda files: evaluator(files, name).update(given)


def in_target(name: str, /, **given: Any) -> Change:
    return lambda files: target(files, name).update(given)


def in_file(path: str, text: str | Document = "changed") -> Change:
    return lambda files: files.update({path: text})


def moved(path: str, to: str, name: str, key: str) -> Change:
    """Move a file, and write its new path where an evaluator names it."""

    def change(files: Repository) -> None:
        files[f"evals/{to}"] = files.pop(f"evals/{path}")
        evaluator(files, name)[key] = f"./{to}"

    return change


def moved_script(files: Repository) -> None:
    for name in ("judge.py", "x.json", "y.json"):
        files[f"evals/scripts/{name}"] = files.pop(f"evals/{name}")
    evaluator(files, "p").update(script="scripts/judge.py", files=["scripts/x.json", "scripts/y.json"])


def swapped(first: str, second: str) -> Change:
    return lambda files: files.update({first: files[second], second: files[first]})


def edited(find: Callable[[Repository], Any], key: Any, edit: Callable[[Any], Any]) -> Change:
    def change(files: Repository) -> None:
        found = find(files)
        found[key] = edit(found[key])

    return change


def without(name: str) -> Change:
    return lambda files: one(files)["evaluators"].remove(evaluator(files, name))


def commented(files: Repository) -> None:
    files[EVAL] = "# A remark.\n\n" + as_yaml(files[EVAL], indent=2).replace("[\n", "[ # another\n\n") + "\n# End.\n"


def reversed_cases(files: Repository) -> None:
    files[EVAL]["evalcases"].reverse()


def with_neighbours(files: Repository) -> None:
    files[EVAL]["evalcases"] = [case("zero"), *files[EVAL]["evalcases"], case("three")]


def changed_neighbour(files: Repository) -> None:
    files[EVAL]["evalcases"][1]["expected_outcome"] = "something else"


def renamed_suite(files: Repository) -> None:
    files["evals/renamed.yaml"] = files.pop(EVAL)


def spelled_otherwise(files: Repository) -> None:
    found = one(files)
    found["outcome"] = found.pop("expected_outcome")
    found["inputMessages"] = found.pop("input_messages")
    evaluator(files, "k")["judgeTarget"] = evaluator(files, "k").pop("judge_target")
    evaluator(files, "p")["type"] = "code_judge"


def made_long(files: Repository) -> None:
    content = one(files)["input_messages"][1]["content"]
    content[0] = {"type": "text", "value": content[0]}
    one(files)["execution"] = {"threshold": 0.8, "target": "default"}
    evaluator(files, "c").update({"weight": 1, "required": False, "negate": False, "case_sensitive": True})


def evaluators_of_the_file(files: Repository) -> None:
    files[EVAL]["execution"] = {"evaluators": one(files).pop("evaluators")}


def schema_in_place(files: Repository) -> None:
    evaluator(files, "s")["schema_inline"] = files.pop("evals/schema.json")
    del evaluator(files, "s")["schema_file"]


def schema_in_another_order(files: Repository) -> None:
    files["evals/schema.json"] = as_yaml(dict(reversed(files["evals/schema.json"].items())))


def renamed_target(files: Repository) -> None:
    target(files, "default")["name"] = "renamed"
    files[EVAL]["target"] = "renamed"


def renamed_judge(files: Repository) -> None:
    target(files, "strict")["name"] = "severe"
    evaluator(files, "k")["judge_target"] = "severe"


def prompt_in_place(files: Repository) -> None:
    evaluator(files, "j")["prompt"] = files.pop("evals/judge.md")


HARMLESS: dict[str, Change] = {
    "a comment": commented,
    "the order of the cases": reversed_cases,
    "new neighbours": with_neighbours,
    "a changed neighbour": changed_neighbour,
    "another suite": in_file("evals/b.yaml", evals(case("else"))),
    "the suite's name": renamed_suite,
    "a file that nothing uses": in_file("evals/unused.txt"),
    "a note": in_case(note="nobody reads this"),
    "metadata": in_case(metadata={"owner": "me"}),
    "the conversation": in_case(conversation_id="talk"),
    "the description": in_suite(description="What it checks."),
    "the dataset": in_suite(dataset="greetings"),
    "the gate": in_suite(execution={"gate": {"min_pass_rate": 0.5, "min_mean_score": 0.5, "max_errors": 5}}),
    "the number of trials": in_case(execution={"repeat": {"max": 5, "require": "any"}}),
    "the seeds": in_case(execution={"seeds": [1, 2, 3]}),
    "the case's time limit": in_case(execution={"timeout_seconds": 5}),
    "the case's retries": in_case(execution={"max_retries": 9}),
    "a script's time limit": in_evaluator("p", timeout_seconds=5),
    "the target's workers": in_target("default", workers=9),
    "the target's batching": in_target("default", provider_batching=True),
    "the target's delay": in_target("default", delay_ms=5),
    "the judge's workers": in_target("judge", workers=9),
    "a target that nothing uses": in_target("other", response="changed"),
    "other spellings": spelled_otherwise,
    "defaults written out": made_long,
    "where the evaluators stand": evaluators_of_the_file,
    "the name of the target": renamed_target,
    "the name of the judge": renamed_judge,
    "who would judge a case that has judges of its own": in_target("other", judge_target="strict"),
    "a judge's retries": in_evaluator("j", judge_retries=5),
    "a prompt in place": prompt_in_place,
    "what the target answers to other cases": in_target("default", responses={"two": "Hi"}),
    "where the prompt lies": moved("judge.md", "prompts/judge.md", "j", "prompt"),
    "where the script and its files lie": moved_script,
    "where the schema lies": moved("schema.json", "schemas/s.json", "s", "schema_file"),
    "a schema in place": schema_in_place,
    "the order of a schema's keys": schema_in_another_order,
}

MEANINGFUL: dict[str, Change] = {
    "the id": in_case(id="one-more"),
    "the expected outcome": edited(one, "expected_outcome", lambda text: text + "."),
    "the threshold": in_case(execution={"threshold": 0.5}),
    "the suite's threshold": in_suite(execution={"threshold": 0.5}),
    "a text of the question": edited(
        lambda files: one(files)["input_messages"][1]["content"], 0, lambda text: text + "."
    ),
    "white space": edited(lambda files: one(files)["input_messages"][1]["content"], 0, lambda text: text + " "),
    "a role": edited(lambda files: one(files)["input_messages"][1], "role", lambda _: "tool"),
    "a speaker": lambda files: one(files)["input_messages"][1].update(name="Ann"),
    "one more turn": lambda files: one(files)["input_messages"].append({"role": "user", "content": "More."}),
    "the order of the turns": lambda files: one(files)["input_messages"].reverse(),
    "a file of the question": in_file("evals/question.txt"),
    "line ends of a file": edited(lambda files: files, "evals/question.txt", lambda text: f"{text}\r\n"),
    "a guideline": in_file("evals/rules.prompt.md"),
    "what is a guideline": in_file(".agentv/config.yaml", {"$schema": "agentv-config-v2", "guideline_patterns": []}),
    "the expected answer": lambda files: one(files)["expected_messages"][1].update(content="changed"),
    "an expected call": lambda files: one(files)["expected_messages"][0]["tool_calls"][0].update(input={"q": 1}),
    "the target": in_case(execution={"target": "other"}),
    "a setting of the target": in_target("default", response="changed"),
    "what the target answers to this case": in_target("default", responses={"one": "Hi"}),
    "a usage of the target": in_target("default", usage={"input_tokens": 1}),
    "a setting of the judge": in_target("judge", response="changed"),
    "a setting of another judge": in_target("strict", response="changed"),
    "the judge": in_evaluator("k", judge_target="other"),
    "a judge's temperature": in_evaluator("j", temperature=0.5),
    "a judge's limit": in_evaluator("j", max_output_tokens=5),
    "a prompt in a file": in_file("evals/judge.md"),
    "a prompt in place": in_evaluator("k", prompt="Is it bad?"),
    "a script": in_file("evals/judge.py"),
    "a file of a script": in_file("evals/x.json"),
    "which file of a script says what": swapped("evals/x.json", "evals/y.json"),
    "the arguments of a script": in_evaluator("p", script="judge.py --strict"),
    "the configuration of a script": in_evaluator("p", config={"a": "changed"}),
    "the folder of a script": in_evaluator("p", cwd=".."),
    "a schema": in_file("evals/schema.json", {"type": "array"}),
    "the form of a schema's answer": in_evaluator("s", format="yaml"),
    "a text to find": edited(lambda files: evaluator(files, "c"), "value", lambda text: text + "."),
    "whether case matters": in_evaluator("c", case_sensitive=False),
    "a pattern": in_evaluator("r", value="b+"),
    "the mode of a trajectory": in_evaluator("t", mode="in_order", expected=[{"tool": "search"}]),
    "a minimum": in_evaluator("t", minimums={"search": 2}),
    "how arguments match": in_evaluator("u", args_match="ignore"),
    "a weight": in_evaluator("c", weight=2),
    "a requirement": in_evaluator("c", required=True),
    "a pass line": in_evaluator("c", min_score=0.5),
    "a negation": in_evaluator("c", negate=True),
    "an evaluator's name": in_evaluator("c", name="d"),
    "one evaluator less": without("r"),
    "the order of the evaluators": lambda files: one(files)["evaluators"].reverse(),
}


@settings(deadline=None, derandomize=True, max_examples=2, phases=[Phase.generate])
@given(text=words)
@pytest.mark.parametrize("change", HARMLESS.values(), ids=list(HARMLESS))
def test_digest_stays_when_what_changes_cannot_change_the_result(change: Change, text: str) -> None:
    before, after = digests(change, text)
    assert after == before


@settings(deadline=None, derandomize=True, max_examples=2, phases=[Phase.generate])
@given(text=words)
@pytest.mark.parametrize("change", MEANINGFUL.values(), ids=list(MEANINGFUL))
def test_digest_changes_when_what_changes_can_change_the_result(change: Change, text: str) -> None:
    before, after = digests(change, text)
    assert after != before


@pytest.mark.parametrize(
    ("plain", "given"),
    [
        (GPT, {"max_retries": 9}),
        (GPT, {"retry_initial_delay_ms": 5}),
        (GPT, {"retry_max_delay_ms": 5}),
        (GPT, {"retry_backoff_factor": 3}),
        (GPT, {"retry_status_codes": [500]}),
        (GPT, {"ca_bundle": "ca.pem"}),
        (GPT, {"workers": 3}),
        (GPT, {"api_key": "${{ OTHER_KEY }}"}),
        (GPT, {"provider": "openai-compatible"}),
        (GPT, {"settings": {"model": "gpt-5"}}),
        (AGENT, {"timeout_seconds": 5}),
        (AGENT, {"healthcheck": {"type": "command", "command_template": "true"}}),
        (AGENT, {"verbose": True}),
        (AGENT, {"keep_temp_files": True}),
        (AGENT, {"workers": "${{ WORKERS }}"}),
    ],
    ids=str,
)
def test_digest_stays_when_a_target_is_asked_otherwise(plain: Document, given: Document) -> None:
    assert digest_of(asking({**plain, **given})) == digest_of(asking(plain))


@pytest.mark.parametrize(
    ("plain", "given"),
    [
        (GPT, {"model": "gpt-4"}),
        (GPT, {"temperature": 0.5}),
        (GPT, {"max_output_tokens": 5}),
        (GPT, {"base_url": "http://localhost"}),
        (GPT, {"headers": {"X-Mode": "a"}}),
        (GPT, {"extra_body": {"top_p": 1}}),
        (GPT, {"max_tokens_param": "max_tokens"}),
        (AGENT, {"command_template": "agent --fast {PROMPT}"}),
        (AGENT, {"cwd": "work"}),
        (AGENT, {"env": {"MODE": "fast"}}),
        (AGENT, {"files_format": "@{path}"}),
        (AGENT, {"attachments_format": "@{path}"}),
    ],
    ids=str,
)
def test_digest_changes_when_a_target_answers_otherwise(plain: Document, given: Document) -> None:
    assert digest_of(asking({**plain, **given})) != digest_of(asking(plain))


def asking(answering: Document) -> Repository:
    return {EVAL: evals(case(evaluators=[contains()])), "targets.yaml": targets(answering)}


def test_digest_does_not_know_the_values_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for value in ("first", "second"):
        monkeypatch.setenv("KEY", value)
        found.add(digest_of({**asking(GPT), "evals/.env": f"KEY={value}\n"}))
    assert len(found) == 1


COVERED: dict[str, list[Any]] = {
    "question": ["a", "b", "a "],
    "outcome": ["x", "y"],
    "threshold": [0.8, 0.5, 0],
    "value": ["v", "w"],
    "response": ["r", "s"],
    "file": ["f", "f\n"],
}
UNCOVERED: dict[str, list[Any]] = {
    "note": ["m", "n"],
    "repeat": [1, 3],
    "timeout": [600, 5],
    "workers": [1, 2],
    "metadata": [{}, {"a": 1}],
    "neighbour": ["p", "q"],
    "indent": [None, 3],
}

covered = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in COVERED.items()})
uncovered = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in UNCOVERED.items()})


def made_of(inside: Document, outside: Document) -> Repository:
    asked = case(
        "one",
        expected_outcome=inside["outcome"],
        input_messages=[{"role": "user", "content": [inside["question"], {"type": "file", "value": "a.txt"}]}],
        evaluators=[contains(inside["value"])],
        note=outside["note"],
        metadata=outside["metadata"],
        execution={
            "threshold": inside["threshold"],
            "repeat": outside["repeat"],
            "timeout_seconds": outside["timeout"],
        },
    )
    document = evals(case(outside["neighbour"]), asked)
    return {
        EVAL: as_yaml(document, indent=outside["indent"]),
        "evals/a.txt": inside["file"],
        "targets.yaml": targets({**MOCK, "response": inside["response"], "workers": outside["workers"]}),
    }


@settings(deadline=None, derandomize=True, max_examples=60, phases=[Phase.generate])
@given(covered, covered, uncovered, uncovered)
def test_two_cases_have_one_digest_if_and_only_if_they_ask_and_judge_the_same(
    first: Document, second: Document, around: Document, around_too: Document
) -> None:
    same = digest_of(made_of(first, around)) == digest_of(made_of(second, around_too))
    assert same == (first == second)


def test_digest_of_a_plan_is_that_of_all_the_rest(repository: Path) -> None:
    plan = json.loads(text_of(compile_here(repository, rich("Grüße 😀"))))
    digest = plan.pop("digest")
    assert digest == hashlib.sha256(rfc8785.dumps(plan)).hexdigest()


@pytest.mark.parametrize(
    "change", [in_case(execution={"repeat": 3}), in_case(metadata={"a": 1}), in_suite(dataset="x"), with_neighbours]
)
def test_digest_of_a_plan_changes_with_everything_in_it(tmp_path: Path, change: Change) -> None:
    after = rich()
    change(after)
    assert compile_here(tmp_path / "a", rich()).digest != compile_here(tmp_path / "b", after).digest


def compiled_text(*patterns: str | Path, cwd: Path) -> str:
    with BytesIO() as scratch, BytesIO() as out:
        selection = Selection(list(map(str, patterns)))
        document, _ = write_plan(selection, cwd=cwd, scratch=scratch, watch=lambda _: None)
        document.copy_to(out)
        return out.getvalue().decode()


def test_plan_is_the_same_bytes_when_the_repository_is_moved(tmp_path: Path) -> None:
    first = write_repository(tmp_path / "first", rich())
    before = compiled_text("evals", cwd=first)
    second = Path(shutil.move(first, tmp_path / "somewhere else" / "deeper" / "second"))
    assert compiled_text("evals", cwd=second) == before


def test_plan_is_the_same_bytes_from_any_working_directory(repository: Path, tmp_path_factory: Any) -> None:
    write_repository(repository, rich())
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    expected = compiled_text("evals", cwd=repository)
    assert [
        compiled_text("a.yaml", cwd=repository / "evals"),
        compiled_text(".", cwd=repository / "evals"),
        compiled_text("../evals/a.yaml", cwd=repository / "evals"),
        compiled_text(repository / "evals", cwd=elsewhere),
        compiled_text(repository / EVAL, cwd=repository.parent),
        compiled_text("evals/*.yaml", cwd=repository),
        compiled_text("evals", EVAL, "evals", cwd=repository),
    ] == [expected] * 7


def test_plan_is_the_same_bytes_in_whatever_order_the_files_are_named(repository: Path) -> None:
    write_repository(repository, {f"evals/{name}.yaml": evals(case(name)) for name in ("b", "a", "c")})
    expected = compiled_text("evals", cwd=repository)
    assert compiled_text("evals/c.yaml", "evals/a.yaml", "evals/b.yaml", cwd=repository) == expected


def test_plan_is_the_same_bytes_whenever_its_files_were_written(repository: Path) -> None:
    write_repository(repository, rich())
    expected = compiled_text("evals", cwd=repository)
    for path in (repository / "evals").iterdir():
        os.utime(path, (1, 1))
    assert compiled_text("evals", cwd=repository) == expected


def test_plan_is_the_same_bytes_in_every_process(repository: Path) -> None:
    write_repository(repository, rich())
    printed = {
        subprocess.run(
            [sys.executable, "-m", "agentv_ci", "compile", "evals"],
            cwd=repository,
            env=clean_environment({"PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"}),
            capture_output=True,
            check=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert printed == {compiled_text("evals", cwd=repository).encode("utf-8")}


def test_plan_holds_no_place_of_the_machine(repository: Path) -> None:
    text = text_of(compile_here(repository, rich(), cwd=repository))
    assert [place for place in (str(repository), str(Path.home()), str(Path.cwd()), os.sep * 2) if place in text] == [
        os.sep * 2
    ]
    assert text.count(os.sep * 2) == text.count("https://")
