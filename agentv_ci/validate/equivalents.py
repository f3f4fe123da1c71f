"""What other tools call something that is written with settings here."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agentv_ci.base.text import listed, nearest
from agentv_ci.contracts.answer_evaluators import TextEvaluator
from agentv_ci.contracts.base import members_of
from agentv_ci.contracts.evaluators import AuthoredEvaluator

FIELDS: Mapping[str, tuple[str, str]] = {
    "threshold": ("min_score", "min_score"),
    **dict.fromkeys(("caseinsensitive", "ignorecase"), ("case_sensitive", "case_sensitive: false")),
    **dict.fromkeys(("assert", "asserts", "assertions", "checks"), ("evaluators", "evaluators")),
    **dict.fromkeys(("tests", "testcases", "cases"), ("evalcases", "evalcases")),
    **dict.fromkeys(("prompt", "question"), ("input", "input")),
    **dict.fromkeys(("expectedoutput", "idealoutput"), ("expected", "expected")),
}
"""Field in lowercase without underscores → the field of the same purpose, and the setting that
means the same.
"""


def instead_of_field(key: str, known: Collection[str]) -> str:
    """Return `; use '…'` for a field of another tool, or an empty text."""
    field, setting = FIELDS.get(key.lower().replace("_", "").replace("-", ""), ("", ""))
    return f"; use '{setting}'" if field in known else ""


def instead_of_type(kind: str) -> str:
    """Return what to use instead for a type of evaluators of another tool or document.

    An empty text if nothing is known.
    """
    if kind == "pairwise_judge":
        return "; it compares arms, and belongs to 'evaluators' of an experiment"
    members = members_of(AuthoredEvaluator, "type")
    plain = kind.lower().replace("-", "_")
    settings: list[str] = []
    if plain.startswith("not_"):
        plain = plain.removeprefix("not_")
        settings.append("'negate: true'")
    insensitive = members.get(plain.removeprefix("i"))
    if plain not in members and insensitive is not None and issubclass(insensitive, TextEvaluator):
        plain = plain.removeprefix("i")
        settings.insert(0, "'case_sensitive: false'")
    if not settings or (meant := nearest(plain, members)) is None:
        return ""
    return f"; use '{meant}' with {listed(settings)}"
