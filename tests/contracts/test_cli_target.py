"""Placeholders inside quotes, where a shell would read again what is put in."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentv_ci.contracts.cli_target import CLI_PLACEHOLDER, placeholders, quoted_placeholders, unknown_placeholders

QUOTED = [
    *("agent '{PROMPT}'", 'agent "{PROMPT}"', 'agent "say {PROMPT} now"', "sh -c 'agent {PROMPT}'"),
    *("agent <<END\n{PROMPT}\nEND", "'a\\' \"{PROMPT}\"", '"x # y {PROMPT}"', "$(echo '{PROMPT}')"),
    *("echo \"$(echo '{PROMPT}')\"", "agent \\{PROMPT}", "agent `){PROMPT}`'", "agent $(cat {PROMPT}"),
    *("agent \\\\\\{PROMPT}", 'agent \\"\\{PROMPT}'),
]
PLAIN = [
    *("agent {PROMPT}", 'agent "$(cat {PROMPT})"', "agent `cat {PROMPT}`", '"`cat {PROMPT}`"'),
    *("# it's a comment\nagent {PROMPT}", "'a\\' {PROMPT}", "agent \\\\{PROMPT}", '\\"{PROMPT}\\"'),
    *("echo '{{PROMPT}}' {PROMPT}", "case x in a) agent {PROMPT};; esac", "$((1 + 2)) {PROMPT} 'x'"),
    *("agent <<< {PROMPT}", "(cd sub && agent {PROMPT}) 'x'", 'echo "it\'s" {PROMPT}'),
]


@pytest.mark.parametrize("template", QUOTED)
def test_placeholder_inside_quotes_is_found(template: str) -> None:
    assert quoted_placeholders(template) == ("PROMPT",)


@pytest.mark.parametrize("template", PLAIN)
def test_placeholder_outside_quotes_is_none(template: str) -> None:
    assert placeholders(template) == ("PROMPT",)
    assert quoted_placeholders(template) == ()


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("agent {promt}", "{promt}"),
        ("agent {PROMT}", "{PROMT}"),
        ("agent '{prompt}'", "{prompt}"),
        ("agent {{ prompt }}", "{{ prompt }}"),
        ('agent "{{prompt_file}}"', "{{prompt_file}}"),
        ("agent {Prompt-File}", "{Prompt-File}"),
        *(
            (template, None)
            for template in ("{PROMPT}", "{{PROMT}}", "awk '{print}'", "awk '{print $1}'", "jq '{name}'")
        ),
        *((template, None) for template in ("${PROMT}", "${prompt}", "${x:-{a,b}}", "{1..3}", "{a,b}", "find {} +")),
        *((template, None) for template in ("\\{prompt}", "x # {promt}", "{{.Names}}", "{{json}}", "git log @{u}")),
        *((template, None) for template in ("curl -w %{url}", "jq '{\"a\":1}'", "f() { agent; }", "{ agent; }")),
    ],
)
def test_words_in_braces_that_are_no_placeholders_are_told_from_other_braces(template: str, found: str | None) -> None:
    assert unknown_placeholders(template) == ((found,) if found else ())


PIECES = st.lists(st.sampled_from(["'", '"', " ", "a", "{PROMPT}", "\\", ";", "`", "$(", ")"]), max_size=8).map("".join)


@given(PIECES)
@example("\\{PROMPT}{PROMPT}'")
def test_what_is_not_found_stays_one_word_of_a_real_shell(pieces: str) -> None:
    template = f"printf '%s\\n' {pieces}"
    if quoted_placeholders(template) or "{PROMPT}" not in template:
        return
    prompt = "x; echo INJECTED '\"`$(echo INJECTED)"
    command = CLI_PLACEHOLDER.sub(lambda _: shlex.quote(prompt), template)
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=30, check=False)
    assert "INJECTED" not in done.stdout.replace(prompt, "")
