"""Finds the secrets of a run and masks them.

Secrets are the values of secret fields (`api_key`, `headers`) and of variables, in the environment
and in `env` and settings of plugins, whose name says so and whose value could be one:
`secret_values` decides. They are found verbatim, JSON-escaped, URL-encoded and in base64, also
within other text there and wrapped in lines.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

from msgspec.structs import replace
from pydantic import BaseModel

from agentv_ci.base.secret_values import (
    could_be_secret,
    is_plain,
    is_secret,
    looks_secret,
    names_secret,
    worth_hiding,
)
from agentv_ci.base.text import printable, shortened
from agentv_ci.contracts.base import JsonValue
from agentv_ci.contracts.environment_references import variable_of
from agentv_ci.contracts.exchange import ProviderError, Response
from agentv_ci.contracts.results import (
    Change,
    EvaluatorResult,
    Expense,
    OutputMessage,
    PrintedOutput,
    ResultRow,
    ToolCall,
)
from agentv_ci.contracts.targets import Target

Part = TypeVar("Part", bound=BaseModel)

MASK = "***"
MAX_DETAIL = 1_000
MAX_PRINTED = 10_000
MAX_SETTINGS = 2_000
MAX_CLEANED = 100_000
FOREIGN_FIELDS = {
    "candidate_answer",
    "output_messages",
    "request",
    "printed",
    "error",
    "finish_reason",
    "model",
}
"""Fields of a row with text from outside."""

PARTLY_SECRET = frozenset({"env", "settings"})
"""Maps of a target in which only environment references may be secret."""


def secrets_of(
    targets: Mapping[str, Target], resolved: Mapping[str, Target], environ: Mapping[str, str]
) -> set[str]:
    """Return the secret values of a run: those of its targets and of its environment.

    Targets that are not asked, and so not resolved, count too: scripts see the environment.
    """
    secrets = {value.strip() for name, value in environ.items() if is_secret(name, value.strip())}
    for key, target in targets.items():
        used = resolved.get(key, target)
        if not isinstance(used, type(target)):
            used = target
        secrets.update(_of_target(target, used, environ))
    return set(filter(worth_hiding, map(str.strip, secrets)))


def _of_target(target: Target, used: Target, environ: Mapping[str, str]) -> Iterator[str]:
    for field in target.secrets:
        written, value = getattr(target, field), getattr(used, field)
        if field in PARTLY_SECRET:
            is_of_plugin = field == "settings"
            yield from _secret_references(written, value, environ, is_of_plugin=is_of_plugin)
        else:
            yield from _secret_values(written, value, environ)


def _looked_up(value: str, environ: Mapping[str, str]) -> str:
    variable = variable_of(value)
    if variable is None:
        return value
    return environ.get(variable, "")


def _lines(secret: str) -> Iterator[str]:
    """Return the lines of a secret without markers such as `-----BEGIN PRIVATE KEY-----`."""
    for line in secret.splitlines():
        if not line.startswith("-----"):
            yield line.strip()


def _secret_values(written: object, used: object, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a secret field, or the values of a map of headers.

    Words that the author wrote out are left out.
    """
    if isinstance(used, str):
        yield _looked_up(used, environ)
    if not isinstance(used, dict):
        return
    for name, value in used.items():
        text = _looked_up(str(value), environ)
        is_reference = isinstance(written, dict) and variable_of(written.get(name)) is not None
        if is_reference or names_secret(name) or not is_plain(text):
            yield text
            # `Bearer <token>`: the token alone is secret too.
            yield from text.split()


def _secret_references(
    written: object, used: object, environ: Mapping[str, str], *, is_of_plugin: bool, name: str = ""
) -> Iterator[str]:
    """Yield the values of environment references that are secrets.

    The name of the field or of the variable says so. Fields of plugins may have any name: there,
    all values but words and identifiers are secret, and below a field such as `auth` or `key` all
    values that could be.
    """
    if (variable := variable_of(written)) is not None:
        value = _looked_up(str(used), environ).strip()
        named = is_secret(name, value) or is_secret(variable, value)
        kept = is_of_plugin and (
            (names_secret(name) and could_be_secret(value)) or not is_plain(value)
        )
        if named or looks_secret(value) or kept:
            yield value
    elif isinstance(written, dict) and isinstance(used, dict):
        for key, item in written.items():
            inner = name if is_of_plugin and names_secret(name) else key
            yield from _secret_references(
                item, used.get(key), environ, is_of_plugin=is_of_plugin, name=inner
            )
    elif isinstance(written, list) and isinstance(used, list):
        for part, item in zip(written, used, strict=False):
            yield from _secret_references(part, item, environ, is_of_plugin=is_of_plugin, name=name)


class Redactor:
    """Masks secrets."""

    def __init__(self, secrets: Iterable[str]) -> None:
        parts: set[str] = set()
        for secret in secrets:
            # Each line too: logs and messages may have a single line of a key.
            parts.update((secret, *filter(worth_hiding, _lines(secret))))
        encoded = set(chain.from_iterable(map(_in_base64, parts)))
        forms = encoded.union(*map(_forms, parts))
        # Longest first: a secret that contains another one is masked as a whole.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern: re.Pattern[str] | None = None
        self._in_any_case: re.Pattern[str] | None = None
        self._longest = 0
        if ordered:
            pattern = "|".join(
                _wrapped(form) if form in encoded else _matching(form) for form in ordered
            )
            self._pattern = re.compile(pattern)
            self._in_any_case = re.compile(pattern, re.IGNORECASE)
            self._longest = 2 * len(ordered[0])
        self._secrets = sorted(parts)

    def text(self, text: str) -> str:
        """Return a text without secrets; removes escape sequences if they split a secret."""
        if self._pattern is None:
            return text
        masked = self._pattern.sub(MASK, text)
        if "\x1b" in masked and self._pattern.search(plain := printable(masked)):
            return self._pattern.sub(MASK, plain)
        return masked

    def hides(self, text: str) -> bool:
        """Return whether a text has a secret in any case.

        Then no answer can be compared with it.
        """
        return self._in_any_case is not None and self._in_any_case.search(text) is not None

    def hides_match(self, matches: Callable[[str], bool]) -> bool:
        """Return whether one of the secrets matches, so that a masked answer may have matched."""
        return any(map(matches, self._secrets))

    def value(self, value: JsonValue) -> JsonValue:
        """Return JSON without secrets, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return list(map(self.value, value))
        return value

    def response(self, response: Response) -> Response:
        """Return a response without secrets; the same object when it holds none."""
        if self._pattern is None:
            return response
        clean: dict[str, Any] = {
            "answer": self.text(response.answer),
            "messages": tuple(map(self._message, response.messages)),
            "model": self._text(response.model),
            "finish_reason": self._text(response.finish_reason),
            "request": self._values(response.request),
            "expenses": tuple(map(self._expense, response.expenses)),
        }
        if _has_all(response, clean):
            return response
        return replace(response, masked=True, **clean)

    def stored(self, response: Response) -> Response:
        """Return a redacted response as it is stored.

        It is also without the secrets in files that the agent has changed. Graders of the run
        itself get these files as they are: a mask could break them.
        """
        changes = tuple(map(self._change, response.changes or ()))
        if changes == (response.changes or ()):
            return response
        return replace(response, changes=changes, masked=True)

    def _change(self, change: Change) -> Change:
        update: dict[str, str | None] = {
            "path": self.text(change.path),
            "link": self._text(change.link),
        }
        if change.base64 is not None:
            content = base64.b64decode(change.base64).decode("utf-8", "surrogateescape")
            masked = self.text(content)
            if masked != content:
                update["base64"] = base64.b64encode(
                    masked.encode("utf-8", "surrogateescape")
                ).decode()
        return _updated(change, update)

    def result(self, result: EvaluatorResult) -> tuple[EvaluatorResult, bool]:
        """Return an evaluator's result without secrets, and whether it had any.

        Its members' results are redacted already. Printed output is shortened afterwards.
        """
        reasoning, raw = self.text(result.reasoning), self._text(result.raw_response)
        stderr, settings = self._text(result.stderr), self._text(result.settings)
        hits, misses = tuple(map(self.text, result.hits)), tuple(map(self.text, result.misses))
        before = (result.hits, result.misses, result.reasoning, result.raw_response, result.stderr)
        longest = MAX_DETAIL if result.status == "error" else MAX_PRINTED
        update = {
            "hits": hits,
            "misses": misses,
            "reasoning": shortened(reasoning, longest),
            "settings": settings and shortened(settings, MAX_SETTINGS),
            "judge_prompt": self._printed(self._text(result.judge_prompt)),
            "raw_response": self._printed(raw),
            "stderr": self._printed(stderr),
        }
        return _updated(result, update), (hits, misses, reasoning, raw, stderr) != before

    def _printed(self, masked: str | None) -> str | None:
        """Return masked output in printable form; of a long one only the beginning and the end."""
        if masked is None:
            return None
        if len(masked) <= 2 * MAX_CLEANED:
            shown = printable(masked)
            if shown != masked:
                shown = self.text(shown)
            return shortened(shown, MAX_PRINTED)
        # The cut may split a secret that escape sequences hid until now.
        head = self.text(printable(masked[:MAX_CLEANED]))[: -self._longest or None]
        tail = self.text(printable(masked[-MAX_CLEANED:]))[self._longest :]
        return shortened(f"{head} … {tail}", MAX_PRINTED)

    def row(self, row: ResultRow) -> ResultRow:
        """Return a row without secrets; it may have been written with other ones."""
        texts: dict[str, JsonValue] = row.model_dump(mode="json", include=FOREIGN_FIELDS)
        clean = self._values(texts)
        if clean == texts:
            return row
        return ResultRow.model_validate({**row.model_dump(mode="json"), **clean, "masked": True})

    def _values(self, values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        return {name: self.value(value) for name, value in values.items()}

    def _text(self, text: str | None) -> str | None:
        if text is None:
            return None
        return self.text(text)

    def clean(self, error: ProviderError) -> None:
        """Remove the secrets from an error, then shorten it.

        Shortening first could leave half a secret. Escape sequences are removed before that: they
        could split a secret.
        """
        detail = printable(error.detail)
        error.masked = self.text(detail) != detail
        error.detail = shortened(self.text(detail), MAX_DETAIL)
        error.args = (error.detail,)
        error.model = self._text(error.model)
        error.earlier = tuple(map(self._expense, error.earlier))
        if error.printed is not None:
            error.printed = PrintedOutput(
                stdout=shortened(self.text(printable(error.printed.stdout)), MAX_PRINTED),
                stderr=shortened(self.text(printable(error.printed.stderr)), MAX_PRINTED),
            )

    def _expense(self, expense: Expense) -> Expense:
        return _updated(expense, {"model": self._text(expense.model)})

    def _message(self, message: OutputMessage) -> OutputMessage:
        calls = tuple(map(self._call, message.tool_calls))
        role, content = self.text(message.role), self.value(message.content)
        if (role, content, calls) == (message.role, message.content, message.tool_calls):
            return message
        return OutputMessage(role=role, content=content, tool_calls=calls)

    def _call(self, call: ToolCall) -> ToolCall:
        return ToolCall(
            tool=self.text(call.tool), input=self.value(call.input), output=self.value(call.output)
        )


def _updated(part: Part, update: Mapping[str, object]) -> Part:
    """Return a model with these values; the same object when it has them already."""
    return part if _has_all(part, update) else part.model_copy(update=update)


def _has_all(part: object, values: Mapping[str, object]) -> bool:
    return all(getattr(part, name) == value for name, value in values.items())


def _wrapped(form: str) -> str:
    """Return a pattern for a form in base64, which may be wrapped in lines."""
    return WRAPPED.join(map(re.escape, form))


def _matching(form: str) -> str:
    """Return a pattern for a form; percent-encoding is matched in upper and lower case."""
    return re.sub(r"%[0-9A-F]{2}", lambda match: f"(?i:{match[0]})", re.escape(form))


WRAPPED = r"[\r\n]{0,2}"
"""What may be between two characters of base64."""


def _in_base64(secret: str) -> Iterator[str]:
    """Yield what a secret is in base64, as in `user:secret` of a Basic header.

    It may be at any place of what is encoded. The first and the last character hold bits of what
    is beside it, unless it is at the beginning or the end.
    """
    raw = secret.encode("utf-8", "replace")
    for before, shared in ((0, 0), (1, 2), (2, 3)):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(bytes(before) + raw).decode().rstrip("=")
            yield text[shared:]
            yield text[shared : (before + len(raw)) * 8 // 6]


def _forms(secret: str) -> set[str]:
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    escaped |= {form.replace("/", "\\/") for form in escaped}
    return {secret, *escaped, quote(secret, safe=""), quote(secret), quote_plus(secret)}


NO_SECRETS = Redactor(())
"""Returns everything unchanged."""
