"""Rules, and diagnostics of users' files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

Kind = Literal["eval", "targets", "config", "judge-set", "quarantine", "experiment"]
"""A kind of document."""
Severity = Literal["info", "warning", "error"]
SEVERITIES_WORST_FIRST: tuple[Severity, ...] = ("error", "warning", "info")
RuleSetting = Literal["error", "warning", "off"]
"""Severity of a rule in a config document."""

SPACE_HINT = "put a space after '-'"
"""The hint for a list item that YAML reads as a text or a key."""


class Rule(Struct, frozen=True):
    """A check of documents; its id is permanent and never reused."""

    name: str
    severity: Severity
    summary: str


RULES: Mapping[str, Rule] = {
    "AV101": Rule(
        "yaml-syntax", "error", "invalid YAML, or a file beyond the limits of size and depth"
    ),
    "AV102": Rule(
        "missing-schema",
        "warning",
        "`$schema` is missing; the kind was recognized by name or content",
    ),
    "AV103": Rule(
        "unknown-document",
        "error",
        "unknown `$schema`, another tool's evaluation, or a given file of another program",
    ),
    "AV104": Rule("duplicate-key", "error", "a duplicate key"),
    "AV105": Rule(
        "unreadable-file",
        "error",
        "no permission, not UTF-8, not a regular file, or a pointer of Git LFS",
    ),
    "AV106": Rule("several-documents", "error", "more than one YAML document in a file"),
    "AV201": Rule("missing-field", "error", "a required field is missing"),
    "AV202": Rule("unknown-field", "error", "an unknown field"),
    "AV203": Rule("wrong-type", "error", "a value of the wrong type"),
    "AV204": Rule(
        "invalid-value", "error", "a value that is not allowed, or an empty list that needs items"
    ),
    "AV205": Rule("invalid-role", "error", "a role that is not system, user, assistant or tool"),
    "AV206": Rule(
        "invalid-content", "error", "content that is neither a text nor a list of texts and blocks"
    ),
    "AV301": Rule("duplicate-id", "error", "a duplicate case id, evaluator name or target name"),
    "AV302": Rule("file-not-found", "error", "a referenced file does not exist"),
    "AV303": Rule("empty-file", "warning", "a referenced file is empty"),
    "AV304": Rule("unknown-target", "error", "a target that the targets file does not define"),
    "AV305": Rule("unknown-placeholder", "error", "an unknown placeholder"),
    "AV306": Rule(
        "template-missing-fields", "warning", "a judge prompt that does not show the answer"
    ),
    "AV307": Rule(
        "template-unknown-variable",
        "warning",
        "a judge prompt with an unknown variable or template syntax",
    ),
    "AV308": Rule("role-marker", "warning", "content with a role marker such as `@[User]:`"),
    "AV309": Rule("invalid-json-schema", "error", "not a usable JSON Schema"),
    "AV310": Rule("invalid-pattern", "error", "a regular expression or glob that does not compile"),
    "AV311": Rule("unknown-validator", "error", "an unknown validator"),
    "AV312": Rule("no-judge", "error", "a judge is needed and none is set"),
    "AV313": Rule("literal-secret", "error", "a literal `api_key` instead of `${{ NAME }}`"),
    "AV314": Rule("spelling-conflict", "warning", "two spellings of one key"),
    "AV315": Rule("bad-reference", "error", "`${{` in a value that is not exactly `${{ NAME }}`"),
    "AV316": Rule(
        "never-scores", "warning", "an evaluator that needs what its target does not report"
    ),
    "AV317": Rule("unknown-rule", "error", "an unknown or fixed rule in a config document"),
    "AV318": Rule(
        "outside-repository", "error", "a file reference to a path outside the repository"
    ),
    "AV319": Rule("zero-weight", "warning", "all weights of a list are 0"),
    "AV320": Rule("incomplete-settings", "error", "missing or contradictory settings"),
    "AV321": Rule("ends-with-assistant", "warning", "the last input message is from the assistant"),
    "AV322": Rule(
        "quoted-placeholder",
        "error",
        "a placeholder of a command inside quotes or after a backslash",
    ),
    "AV323": Rule(
        "validator-settings",
        "error",
        "an unknown, missing or invalid setting of a built-in validator",
    ),
    "AV324": Rule(
        "unknown-member", "error", "a weight for an evaluator that is not a member of the composite"
    ),
    "AV325": Rule(
        "shell-syntax",
        "error",
        "shell syntax, or an unclosed quote, in a script that runs without a shell",
    ),
    "AV326": Rule(
        "typographic-quotes", "warning", "a value in typographic quotes, which YAML does not remove"
    ),
    "AV327": Rule(
        "literal-reference", "warning", "`${{ NAME }}` or an id with `{{ name }}` that stay literal"
    ),
    "AV328": Rule("incomplete-message", "error", "an expected message without usable content"),
    "AV329": Rule("no-prompt", "error", "a command that never gets the prompt"),
    "AV330": Rule(
        "unusable-setting", "error", "an address, header, path or metric that a run refuses"
    ),
    "AV331": Rule("invalid-data", "error", "rows of data that cannot be read, or are not there"),
    "AV332": Rule(
        "missing-variable",
        "error",
        "`{{ name }}` in a case made from rows, without a value in the row",
    ),
    "AV333": Rule(
        "unknown-scale",
        "error",
        "a judge prompt that asks for another scale than 0 to 1, without `scale`",
    ),
    "AV345": Rule(
        "leftover-only", "warning", "`only` on a case, which leaves out the other cases of its file"
    ),
    "AV346": Rule(
        "nothing-required",
        "warning",
        "a case whose evaluators only forbid: negated ones and limits",
    ),
    "AV351": Rule(
        "unusable-plugin", "error", "a plugin that is not installed, or cannot be loaded"
    ),
    "AV355": Rule(
        "unusable-attachment", "error", "an image or a document in a format that is not supported"
    ),
    "AV356": Rule(
        "misplaced-attachment", "error", "an image or a document outside messages of the user"
    ),
    "AV357": Rule(
        "refused-attachment", "error", "an image or a document that the target does not take"
    ),
    "AV361": Rule(
        "no-workspace", "error", "an evaluator of what an agent leaves behind, without a workspace"
    ),
    "AV362": Rule(
        "unusable-workspace", "error", "contradictory settings of a workspace, or an unknown commit"
    ),
    "AV363": Rule("workspace-refused", "error", "a target that cannot work in a workspace"),
    "AV371": Rule(
        "expired-quarantine",
        "error",
        "a quarantine that has expired, or a date that does not exist",
    ),
    "AV372": Rule("unmatched-quarantine", "error", "a quarantine of cases that do not exist"),
    "AV373": Rule("long-quarantine", "warning", "a quarantine that expires in more than 90 days"),
    "AV381": Rule(
        "unknown-metric",
        "error",
        "a metric that the experiment does not compare, or that no case has",
    ),
    "AV382": Rule("unknown-ref", "error", "an arm at a branch, tag or commit that does not exist"),
    "AV383": Rule("equal-arms", "error", "two arms of an experiment that do not differ"),
    "AV384": Rule("useless-arm-setting", "error", "a setting of an arm that changes nothing"),
}

PROOF_RULES: Mapping[str, Rule] = {
    "AV401": Rule(
        "null-agent-passes", "warning", "a case that an agent passes without doing anything for it"
    ),
    "AV402": Rule("reference-fails", "error", "a reference answer that fails its own evaluators"),
    "AV403": Rule(
        "mutant-survives",
        "warning",
        "a reference answer with a mistake that its evaluators let pass",
    ),
    "AV404": Rule(
        "evaluator-crashes",
        "warning",
        "an evaluator that cannot score an empty or otherwise odd answer",
    ),
    "AV405": Rule("vacuous-evaluator", "warning", "an evaluator that passes every answer"),
    "AV406": Rule(
        "redundant-evaluator",
        "info",
        "an evaluator without which each answer gets the same verdict",
    ),
    "AV407": Rule(
        "not-proven",
        "info",
        "a case that no evaluator scored, or that depends on judges that did not",
    ),
}
"""What `prove` finds of cases; `validate` does not, and config documents cannot change them."""

_NEEDED = {
    "AV101",
    "AV103",
    "AV104",
    "AV105",
    "AV106",
    "AV301",
    "AV302",
    "AV304",
    "AV309",
    "AV312",
    "AV320",
    "AV325",
}
_PARTS = {"AV331", "AV332", "AV351", "AV355", "AV356", "AV357", "AV361", "AV362", "AV363"}
_ARMS = {"AV381", "AV382", "AV383", "AV384"}
_COMMANDS = {"AV305", "AV322", "AV329"}
FIXED_RULES = frozenset(
    {*_NEEDED, *_PARTS, *_ARMS, *_COMMANDS, *(rule for rule in RULES if rule.startswith("AV2"))}
)
"""Rules whose severity cannot be changed: what breaks them cannot be compiled or run."""


class Diagnostic(Struct, frozen=True):
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


class FileDiagnostics(Struct, frozen=True):
    """The diagnostics of one file, without its content."""

    path: Path
    root: Path
    """The repository it belongs to."""
    kind: Kind | None
    diagnostics: tuple[Diagnostic, ...]
    without_targets: bool
    """Whether it is an eval file that was checked without a targets file."""
    beside: tuple[FileDiagnostics, ...] = ()
    """Targets and config files that it is read with, if they have diagnostics."""

    def is_valid(self, *, strict: bool) -> bool:
        """Whether there are no errors; with `strict`, no warnings either."""
        return not any(strict or found.severity == "error" for found in self.diagnostics)
