"""The scenarios of the validation specification, in its order; each runs the command as a user does."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from agentv_ci.app.validate import check_paths
from agentv_ci.contracts.targets import CliTarget
from agentv_ci.jsonschema.schemas import document
from tests.support import CommandResult, run_command, write

TARGETS = "$schema: agentv-targets-v2.2\ntargets:\n  - {name: default, provider: mock}\n"
CASE = """\
  - id: {id}
    outcome: A greeting
    input_messages: [{{role: user, content: Hello}}]
    expected_messages: [{{role: assistant, content: Hi}}]
"""
EVAL = "$schema: agentv-eval-v2\nevalcases:\n" + CASE.format(id="greets")
WRONG = EVAL.replace("user", "usr")


def validate(
    folder: Path, files: Mapping[str, str], *arguments: str, env: Mapping[str, str] | None = None
) -> CommandResult:
    """Write files into a repository and check them, or what `arguments` name."""
    (folder / ".git").mkdir(exist_ok=True)
    write(folder, files)
    return run_command("validate", *(arguments or files), cwd=folder, env=env)


def cli_target(**settings: object) -> str:
    target = {"name": "agent", "provider": "cli", "command_template": "agent {PROMPT}"} | settings
    return f"$schema: agentv-targets-v2.2\ntargets: {json.dumps([target])}\n"


def judge(prompt: str) -> str:
    return f"{EVAL}    evaluators: {json.dumps([{'name': 'tone', 'type': 'llm_judge', 'prompt': prompt}])}\n"


class TestValidateCommand:
    def test_single_eval_file(self, tmp_path: Path) -> None:
        done = validate(tmp_path, {"x.yaml": WRONG, "targets.yaml": TARGETS}, "x.yaml")
        assert "x.yaml:5:29: error: unknown role 'usr'" in done.out

    def test_targets_file(self, tmp_path: Path) -> None:
        done = validate(tmp_path, {".agentv/targets.yaml": TARGETS.replace("mock", "mokc")}, ".agentv/targets.yaml")
        assert "'provider' cannot be 'mokc' (did you mean 'mock'?)" in done.out

    def test_entire_directory(self, tmp_path: Path) -> None:
        files = {
            "evals/a/one.yaml": EVAL,
            "evals/two.yml": EVAL,
            "evals/targets.yaml": TARGETS,
            "evals/ci.yaml": "on: {}",
        }
        done = validate(tmp_path, files, "./evals")
        assert done.out == "3 files checked, 3 passed, 0 failed, 0 errors, 0 warnings, 1 skipped\n"

    def test_multiple_paths_in_order(self, tmp_path: Path) -> None:
        done = validate(tmp_path, {"b.yaml": WRONG, "a.yaml": WRONG, "targets.yaml": TARGETS})
        assert re.findall(r"/(\w+\.yaml):", done.out) == ["b.yaml", "a.yaml"]

    def test_exit_codes(self, tmp_path: Path) -> None:
        assert validate(tmp_path, {"x.yaml": EVAL, "targets.yaml": TARGETS}).code == 0
        assert validate(tmp_path, {"x.yaml": EVAL.replace("id:", "di:")}).code == 1


class TestEvalFile:
    @pytest.mark.parametrize(
        ("text", "messages"),
        [
            (EVAL.replace("evalcases", "tests"), ["missing field 'evalcases'", "unknown field 'tests'"]),
            ("$schema: agentv-eval-v2\n", ["missing field 'evalcases'"]),
            (
                EVAL.replace("user", "human"),
                ["unknown role 'human'; expected system, user, assistant, tool [AV205]"],
            ),
            (
                EVAL.replace("content: Hello", "content: 5"),
                ["content must be a text or a list of texts and blocks, not 5 [AV206]"],
            ),
        ],
        ids=["schema field selects the rules", "evalcases required", "invalid role value", "invalid content format"],
    )
    def test_invalid_document(self, text: str, messages: list[str], tmp_path: Path) -> None:
        done = validate(tmp_path, {"x.yaml": text})
        assert (done.code, [message for message in messages if message not in done.out]) == (1, [])

    @pytest.mark.parametrize("field", ["id", "outcome", "input_messages", "expected_messages"])
    def test_missing_field_is_named_with_its_case(self, field: str, tmp_path: Path) -> None:
        lines = (line.strip().removeprefix("- ") for line in CASE.format(id="greets").splitlines())
        kept = "".join(f"    {line}\n" for line in lines if not line.startswith(f"{field}:"))
        shown = "expected_outcome" if field == "outcome" else field
        label = "evalcases[0]" if field == "id" else "greets"
        done = validate(tmp_path, {"x.yaml": f"$schema: agentv-eval-v2\nevalcases:\n  - note: x\n{kept}"})
        assert re.search(rf"missing field '{shown}'.* \[AV201\] \({re.escape(label)}\)", done.out)

    @pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
    def test_valid_roles(self, role: str, tmp_path: Path) -> None:
        first = f"[{{role: {role}, content: x}}, {{role: user, content"
        assert validate(tmp_path, {"x.yaml": EVAL.replace("[{role: user, content", first, 1)}).code == 0


class TestTargetsFile:
    def test_unknown_cli_property_rejected(self, tmp_path: Path) -> None:
        done = validate(tmp_path, {"targets.yaml": cli_target(keep_temp_file=True)})
        assert "unknown field 'keep_temp_file' (did you mean 'keep_temp_files'?) [AV202] (agent)" in done.out
        assert done.code == 1

    @pytest.mark.parametrize("spelling", ["keep_temp_files", "keepTempFiles"])
    def test_valid_cli_property_in_both_spellings(self, spelling: str, tmp_path: Path) -> None:
        done = validate(tmp_path, {"targets.yaml": cli_target(**{spelling: True})}, "--strict", "targets.yaml")
        assert (done.code, done.out.count("\n")) == (0, 1)

    def test_wrong_type_names_the_expected_one_and_the_place(self, tmp_path: Path) -> None:
        done = validate(tmp_path, {"targets.yaml": cli_target(verbose="yes")})
        assert f"{tmp_path}/targets.yaml:2:" in done.out
        assert "'verbose' must be true or false, not 'yes' [AV203] (agent)" in done.out

    def test_nested_healthcheck(self, tmp_path: Path) -> None:
        done = validate(tmp_path, {"targets.yaml": cli_target(healthcheck={"type": "http"})}, "--format", "json", ".")
        (found,) = json.loads(done.out)["files"][0]["diagnostics"]
        assert (found["message"], found["pointer"]) == ("missing field 'url'", "targets[0].healthcheck.url")


class TestFileReferences:
    @pytest.mark.parametrize(
        ("value", "files", "code", "message"),
        [
            ("../prompts/js.md", {"prompts/js.md": "Be kind."}, 0, "1 file checked, 1 passed"),
            ("../prompts/js.md", {}, 1, "file '../prompts/js.md' does not exist: {}/prompts/js.md [AV302]"),
            ("empty.md", {"evals/empty.md": ""}, 0, "warning: file 'empty.md' is empty"),
        ],
        ids=["existing, relative to the eval file", "missing, with its full path", "empty"],
    )
    def test_reference(self, value: str, files: dict[str, str], code: int, message: str, tmp_path: Path) -> None:
        text = EVAL.replace("content: Hello", f"content: [{{type: file, value: {value}}}]")
        done = validate(tmp_path, {"evals/x.yaml": text, **files}, "evals/x.yaml")
        assert (done.code, message.replace("{}", str(tmp_path)) in done.out) == (code, True)


class TestReporting:
    def test_path_place_and_case(self, tmp_path: Path) -> None:
        done = validate(tmp_path, {"x.yaml": WRONG})
        assert re.match(rf"{re.escape(str(tmp_path))}/x\.yaml:5:29: error: .* \[AV205\] \(greets\)\n", done.out)

    def test_all_errors_in_one_pass_and_a_summary(self, tmp_path: Path) -> None:
        wrong = WRONG.replace("content: Hi", "content: 5").replace("outcome", "outcom")
        done = validate(tmp_path, {"x.yaml": wrong, "targets.yaml": TARGETS})
        assert done.out.count(": error: ") == 3
        assert done.out.endswith("2 files checked, 1 passed, 1 failed, 3 errors, 0 warnings\n")

    def test_colors_only_when_requested(self, tmp_path: Path) -> None:
        wrong = WRONG.replace("$schema: agentv-eval-v2\n", "")
        red = validate(tmp_path, {"x.yaml": wrong}, "--color", "always", "x.yaml").out
        assert "\x1b[31merror" in red
        assert "\x1b[33mwarning" in red
        for env in ({}, {"NO_COLOR": "1"}):
            assert "\x1b" not in validate(tmp_path, {"x.yaml": wrong}, env=env).out
        assert "\x1b[32m1 file checked" in validate(tmp_path, {"x.yaml": EVAL}, "--color", "always", "x.yaml").out


class TestPerformance:
    def test_processes_give_what_one_process_gives(self, tmp_path: Path) -> None:
        files = {f"evals/{number:03}.yaml": EVAL if number % 7 else WRONG for number in range(120)}
        one = validate(tmp_path, files, "--jobs", "1", "evals")
        assert one.out.count("\n") == 20
        assert validate(tmp_path, files, "--jobs", "3", "evals") == one

    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["fork", "spawn"])
    def test_processes_may_start_either_way(self, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(tmp_path, {f"evals/{number:03}.yaml": WRONG for number in range(100)})
        monkeypatch.setattr("agentv_ci.app.validate.start_method", lambda: method)
        one, two = (check_paths(["evals"], targets=None, cwd=tmp_path, jobs=jobs) for jobs in (1, 2))
        assert one == two
        assert [each.rule for file in one.files for each in file.diagnostics] == ["AV205"] * 100

    def test_invalid_yaml_affects_no_other_file(self, tmp_path: Path) -> None:
        done = validate(tmp_path, {"a.yaml": "a: [", "b.yaml": WRONG})
        assert re.findall(r"\[(AV\d+)\]", done.out) == ["AV101", "AV205"]

    def test_hundred_files_are_checked(self, tmp_path: Path) -> None:
        text = "$schema: agentv-eval-v2\nevalcases:\n" + "".join(CASE.format(id=f"case-{n}") for n in range(10))
        begun = time.monotonic()
        assert validate(tmp_path, {f"evals/{number}.yaml": text for number in range(100)}, "evals").code == 0
        assert time.monotonic() - begun < 60, "the promise is 5 s; on a busy machine, only a hang is an error"


class TestJudgeTemplates:
    """What a run says of them is tested in test_evaluators.py."""

    MISSING = "Custom evaluator template at {} is missing required fields"

    def test_missing_both_fields(self, tmp_path: Path) -> None:
        done = validate(tmp_path, {"x.yaml": judge("{{ question }}"), "targets.yaml": TARGETS})
        assert done.code == 0
        assert self.MISSING.format("'prompt' of evaluator 'tone'") in done.out
        for text in (
            "{{ candidate_answer }}",
            "{{ expected_messages }}",
            "Without these, there is nothing to evaluate",
        ):
            assert text in done.out

    @pytest.mark.parametrize("name", ["candidate_answer", "expected_messages"])
    def test_either_field_is_enough(self, name: str, tmp_path: Path) -> None:
        assert "warning" not in validate(tmp_path, {"x.yaml": judge(f"{{{{ {name} }}}}")}).out.splitlines()[0]

    def test_file_based_prompt(self, tmp_path: Path) -> None:
        text = EVAL + "    evaluators: [{name: tone, type: llm_judge, promptPath: ./my-eval.md}]\n"
        done = validate(tmp_path, {"x.yaml": text, "my-eval.md": "{{ question }}"}, "x.yaml")
        assert self.MISSING.format(tmp_path / "my-eval.md") in done.out

    def test_invalid_variables_and_all_valid_ones(self, tmp_path: Path) -> None:
        done = validate(tmp_path, {"x.yaml": judge("{{ candiate_answer }} for {{ invalid_var }}")})
        names = [*("candidate_answer", "expected_messages", "question", "expected_outcome", "reference_answer")]
        names += ["input_messages", "output_messages", "candiate_answer", "invalid_var"]
        assert [name for name in names if f"{{{{ {name} }}}}" not in done.out] == []


CLI = {"name": "a", "provider": "cli", "command_template": "x"}


class TestExternalTools:
    def test_a_contract_validates_alone(self) -> None:
        assert CliTarget.model_validate(CLI | {"keepTempFiles": True}).keep_temp_files is True
        assert CliTarget.model_validate(CLI | {"keep_temp_files": False}).keep_temp_files is False
        with pytest.raises(ValueError, match=r"keep_temp_file\n.*Extra inputs"):
            CliTarget.model_validate(CLI | {"keep_temp_file": True})

    def test_normalised_to_camel_case(self) -> None:
        target = CliTarget.model_validate(CLI | {"keep_temp_files": True})
        dumped = target.model_dump(by_alias=True, exclude_none=True)
        assert dumped == {"name": "a", "provider": "cli", "commandTemplate": "x", "keepTempFiles": True}

    def test_names_types_and_descriptions_are_public(self) -> None:
        assert all(field.annotation and field.description for field in CliTarget.model_fields.values())

    def test_published_schema_agrees(self) -> None:
        validator = Draft202012Validator(document("targets-v2"))
        target = {"name": "a", "provider": "cli", "commandTemplate": "x"}
        assert validator.is_valid({"targets": [target]})
        assert not validator.is_valid({"targets": [target | {"keep_temp_file": True}]})
