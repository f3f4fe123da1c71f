"""What is wrong with a user's file, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["info", "warning", "error"]
RuleSetting = Literal["error", "warning", "off"]
"""What a config document makes of a rule."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A permanent promise: an id is never reused."""

    name: str
    severity: Severity
    says: str


RULES: Mapping[str, Rule] = {
    "AV101": Rule("yaml-syntax", "error", "not YAML, or larger or deeper than the limits"),
    "AV102": Rule("missing-schema", "warning", "no `$schema`; recognised by name or content"),
    "AV103": Rule("unknown-document", "error", "unknown `$schema`, or a named file that is no document of ours"),
    "AV104": Rule("duplicate-key", "error", "a key given twice"),
    "AV105": Rule("unreadable-file", "error", "permission, encoding (UTF-8 only), or not a regular file"),
    "AV106": Rule("several-documents", "error", "more than one YAML document in a file"),
    "AV201": Rule("missing-field", "error", "a required field is missing"),
    "AV202": Rule("unknown-field", "error", "a field that does not exist"),
    "AV203": Rule("wrong-type", "error", "a value of another type than expected"),
    "AV204": Rule("invalid-value", "error", "a value outside the allowed ones, or an empty list that needs entries"),
    "AV205": Rule("invalid-role", "error", "a role that is not system, user, assistant or tool"),
    "AV206": Rule("invalid-content", "error", "content that is neither text nor a list of text and blocks"),
    "AV301": Rule("duplicate-id", "error", "a case id, evaluator name or target name given twice"),
    "AV302": Rule("file-not-found", "error", "a referenced file does not exist"),
    "AV303": Rule("empty-file", "warning", "a referenced file is empty"),
    "AV304": Rule("unknown-target", "error", "a target that no targets file defines"),
    "AV305": Rule("unknown-placeholder", "error", "a placeholder that does not exist"),
    "AV306": Rule("template-missing-fields", "warning", "a judge's prompt that never shows the answer"),
    "AV307": Rule("template-unknown-variable", "warning", "a judge's prompt with a variable that does not exist"),
    "AV308": Rule("role-marker", "warning", "content that holds a role marker such as `@[User]:`"),
    "AV309": Rule("invalid-json-schema", "error", "not a usable JSON Schema"),
    "AV310": Rule("invalid-pattern", "error", "a regular expression or glob that does not compile"),
    "AV311": Rule("unknown-validator", "error", "a run validator that does not exist"),
    "AV312": Rule("no-judge", "error", "a judge is needed and none can be resolved"),
    "AV313": Rule("literal-secret", "error", "an `api_key` written out instead of `${{ NAME }}`"),
    "AV314": Rule("spelling-conflict", "warning", "two spellings of one key"),
    "AV315": Rule("bad-reference", "error", "`${{` that is not a whole `${{ NAME }}` value"),
    "AV316": Rule("never-scores", "warning", "an evaluator that its target can never feed"),
    "AV317": Rule("unknown-rule", "error", "a rule id in the config document that does not exist or cannot be changed"),
    "AV318": Rule("outside-repository", "error", "a file reference that leaves the repository"),
    "AV319": Rule("zero-weight", "warning", "all weights of a list are 0"),
    "AV320": Rule("incomplete-settings", "error", "none, or more than one, of alternative settings"),
    "AV321": Rule("ends-with-assistant", "warning", "the last input message is the assistant's"),
    "AV322": Rule("quoted-placeholder", "error", "a placeholder of a command stands in quotes or behind a backslash"),
    "AV323": Rule("validator-settings", "error", "a setting that a built-in validator does not have, needs or take"),
}

FIXED_RULES = frozenset(
    {"AV101", "AV103", "AV104", "AV105", "AV106", *(rule for rule in RULES if rule.startswith("AV2"))}
)
"""Rules whose severity cannot be changed: without them nothing can go on."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake in one file. Lines and columns count from 1."""

    rule: str
    severity: Severity
    message: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    pointer: str | None = None
    case: str | None = None
    target: str | None = None
    hint: str | None = None
