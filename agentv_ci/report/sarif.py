"""Parts of SARIF 2.1.0, which code scanning services read (OASIS Standard, 27 March 2020)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence

from agentv_ci.base.json_access import well_formed
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.report.view import quoted
from agentv_ci.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "agentvCi/v1"


def rule(rule_id: str, name: str, says: str, level: str) -> JsonObject:
    """Describe a rule; `name` is hyphenated, `says` is a sentence without its full stop."""
    return {
        "id": rule_id,
        "name": "".join(map(str.capitalize, name.split("-"))),
        "shortDescription": {"text": f"{says[:1].upper()}{says[1:]}."},
        "defaultConfiguration": {"level": level},
    }


def log(rules: Sequence[JsonValue], results: Sequence[JsonValue], **more: JsonValue) -> str:
    """Return a whole log with one run; `more` are further properties of the run."""
    driver: JsonObject = {"name": "agentv-ci", "version": __version__, "rules": [*rules]}
    run: JsonObject = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [*results],
        **more,
    }
    whole: JsonObject = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(well_formed(whole), indent=2, ensure_ascii=False) + "\n"


def location(path: str, region: JsonObject) -> JsonObject:
    """Return a place in a file; `path` is relative to the repository, or absolute."""
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(path)}, "region": region}}


def message(text: str) -> JsonObject:
    """Return a plain-text message."""
    return {"text": without_links(text)}


def without_links(text: str) -> str:
    """Return a text without embedded links (section 3.11.6)."""
    return text.replace("](", "] (")


def fingerprint(known: Sequence[str], seen: Counter[str]) -> JsonObject:
    """Return what identifies a result in its log and in later logs."""
    joined = "\0".join(known)
    seen[joined] += 1
    return {
        FINGERPRINT: hashlib.sha256(
            f"{joined}\0{seen[joined]}".encode(errors="surrogatepass")
        ).hexdigest()
    }


def _uri(path: str) -> str:
    if path.startswith("/"):
        return f"file://{quoted(path)}"
    return quoted(path)
