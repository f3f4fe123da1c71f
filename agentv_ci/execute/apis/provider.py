"""API providers: questions, retries, refused parameters, truncated answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.base.json_access import text_at
from agentv_ci.base.retry import DEFAULT_STATUS_CODES, RetryPolicy
from agentv_ci.contracts.api_targets import HttpTarget
from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import (
    NO_SYSTEM_PROMPT,
    Attachment,
    ChatMessage,
    ProviderError,
    Request,
    Response,
)
from agentv_ci.contracts.results import Usage
from agentv_ci.contracts.target_settings import number
from agentv_ci.execute.apis.refusals import Parameters, Refused
from agentv_ci.execute.apis.transport import Transport
from agentv_ci.execute.provider_services import ProviderServices
from agentv_ci.execute.retries import logged_retries

DEFAULT_SYSTEM_PROMPT = "You are a careful assistant. Follow the instructions and make nothing up."

EFFORTS = ((0, "none"), (2_048, "low"), (8_192, "medium"), (24_576, "high"))
"""Largest thinking budget → level of effort; above the last one it is `xhigh`."""


class Api(Struct, frozen=True):
    """One API, for one resolved target."""

    base_url: str
    """The API's root."""
    path: str
    """What follows the root, with a leading `/`."""
    headers: Mapping[str, str]
    """Headers for authentication and version."""
    question: tuple[str, ...]
    """Keys of the body that go into the row."""
    body: Callable[[Request], JsonObject]
    """Returns the body of a question."""
    response: Callable[[JsonObject], Response]
    """Reads an answer; raises ProviderError."""
    usage: Callable[[JsonObject], Usage | None]
    """Reads the tokens of an answer, also of one that cannot be used."""
    takes_seed: bool
    """Whether the API supports seeds."""
    status_codes: frozenset[int] = DEFAULT_STATUS_CODES
    """HTTP statuses to retry when the target sets none."""


class ApiProvider:
    """See Provider."""

    def __init__(self, target: HttpTarget, api: Api, services: ProviderServices) -> None:
        bundle = None
        if target.ca_bundle:
            bundle = str(services.place(target.ca_bundle))
        self._target = target
        self._api = api
        self._services = services
        self._policy = retry_policy(target, api.status_codes)
        self._parameters = Parameters()
        self._transport = Transport(
            api.base_url, ca_bundle=bundle, environment=services.environment
        )

    async def check(self) -> None:
        """Do nothing: the settings were checked when they were resolved."""

    async def ask(self, request: Request) -> Response:
        """Post the question, with retries as the target sets them."""
        if request.seed is not None and not self._api.takes_seed:
            self._services.warn_of_seed(self._target.name, "API")
        body = with_extra(self._api.body(request), self._target.extra_body)
        shown = body
        if request.attached:
            shown = with_extra(
                self._api.body(replace(request, attached=None)), self._target.extra_body
            )
        asked: JsonObject = {key: shown[key] for key in self._api.question if key in shown}
        adjusted = 0

        async def once() -> Response:
            nonlocal adjusted
            while True:
                adapted = self._parameters.adapted(body)
                try:
                    return await self._post(adapted, asked, request.case_id)
                except ProviderError as error:
                    learned = self._parameters.learn(error, adapted)
                    if learned is None:
                        raise
                    self._services.warn(f"{self._target.name}: {learned}")
                    adjusted += 1

        try:
            response, tries = await logged_retries(
                once, self._policy, self._target.name, self._services, timeout_s=request.timeout_s
            )
        except ProviderError as error:
            error.requests += adjusted
            if error.retry_after_s is not None and error.retry_after_s > self._policy.max_delay_s:
                error.detail += (
                    f" (retry-after {error.retry_after_s:g} s is longer than retry_max_delay_ms)"
                )
            raise
        requests = tries + adjusted
        if requests > 1:
            return replace(response, requests=requests)
        return response

    async def _post(self, body: JsonObject, asked: JsonObject, case_id: str) -> Response:
        # The target's come last: the transport lowers names, so they override.
        headers = {**self._api.headers, **(self._target.headers or {})}
        begun = self._services.environment.monotonic()
        try:
            reply = await self._transport.post(self._api.path, headers=headers, body=body)
        except Refused as error:
            self._take_usage(error, error.body)
            raise
        took_s = self._services.environment.monotonic() - begun
        try:
            response = self._api.response(reply)
        except ProviderError as error:
            self._take_usage(error, reply)
            raise
        self._services.warn_if_cut(
            response, self._target.name, case_id, setting="max_output_tokens"
        )
        # A model that was offered tools but called none has a trace too.
        has_trace = response.has_trace or bool(body.get("tools") or body.get("functions"))
        return replace(
            response,
            has_trace=has_trace,
            # Only of the request that was answered: retries say nothing about the answer.
            duration_ms=round(took_s * 1000),
            request=asked,
        )

    def _take_usage(self, error: ProviderError, reply: JsonValue) -> None:
        """Add to the error of a reply what the reply says was used."""
        if isinstance(reply, dict):
            error.model = text_at(reply, "model") or text_at(reply, "modelVersion")
            error.usage = self._api.usage(reply)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()


def retry_policy(target: HttpTarget, status_codes: frozenset[int]) -> RetryPolicy:
    """Return the retry policy of a resolved target; `status_codes` are the default."""
    default = RetryPolicy()
    codes = target.retry_status_codes
    return RetryPolicy(
        max_retries=int(number(target.max_retries, default.max_retries)),
        initial_delay_s=number(target.retry_initial_delay_ms, default.initial_delay_s * 1000)
        / 1000,
        max_delay_s=number(target.retry_max_delay_ms, default.max_delay_s * 1000) / 1000,
        backoff_factor=number(target.retry_backoff_factor, default.backoff_factor),
        status_codes=status_codes if codes is None else frozenset(map(int, codes)),
    )


def instructions_and_turns(target: HttpTarget, request: Request) -> tuple[str, list[ChatMessage]]:
    """Return the system message, which may be empty, and the other turns.

    A system prompt that is set comes first; the built-in one is only for a conversation without
    any.
    """
    system = [
        message.content
        for message in request.chat
        if message.role == "system" and message.content.strip()
    ]
    turns = [message for message in request.chat if message.role != "system"]
    own = target.system_prompt if request.system_prompt is None else request.system_prompt
    if own is None:
        system = system or [DEFAULT_SYSTEM_PROMPT]
    elif own != NO_SYSTEM_PROMPT:
        system = [own, *system]
    return "\n\n".join(system), turns


def alternating(turns: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Return turns for APIs that require alternating roles, with no empty turn.

    The user speaks first and last.

    Anthropic's newer models refuse a chat that ends with the assistant.
    """
    alternate: list[ChatMessage] = []
    for turn in turns:
        if not turn.content.strip():
            continue
        if alternate and alternate[-1].role == turn.role:
            alternate[-1] = _joined(alternate[-1], turn)
        else:
            alternate.append(turn)
    if not alternate or alternate[0].role != "user":
        alternate.insert(0, ChatMessage("user", "Begin."))
    if alternate[-1].role != "user":
        alternate.append(ChatMessage("user", "Continue."))
    return alternate


def _joined(first: ChatMessage, second: ChatMessage) -> ChatMessage:
    """Return two turns of one role as one."""
    joined = ChatMessage(first.role, f"{first.content}\n\n{second.content}")
    if first.parts or second.parts:
        return replace(joined, parts=(*_parts(first), *_parts(second)))
    return joined


def _parts(turn: ChatMessage) -> tuple[str | Attachment, ...]:
    return turn.parts or (turn.content,)


def messages_of(
    turns: Iterable[ChatMessage],
    request: Request,
    text_form: Callable[[str], JsonObject],
    attachment_form: Callable[[Attachment, str], JsonObject],
) -> list[JsonValue]:
    """Return turns as messages with a role, and as content a text or else parts (`parts_of`)."""

    def message(turn: ChatMessage) -> JsonObject:
        content: JsonValue = turn.content
        if turn.parts:
            content = parts_of(turn, request, text_form, attachment_form)
        return {"role": turn.role, "content": content}

    return list(map(message, turns))


def parts_of(
    turn: ChatMessage,
    request: Request,
    text_form: Callable[[str], JsonObject],
    attachment_form: Callable[[Attachment, str], JsonObject],
) -> list[JsonValue]:
    """Return the parts of a turn in an API's form.

    `attachment_form` gets the Base64 of a file, and an empty text for a URL.
    """

    def form(part: str | Attachment) -> JsonObject:
        if isinstance(part, str):
            return text_form(part)
        if part.sha256 is None:
            return attachment_form(part, "")
        if request.attached is None:
            return part.shown
        return attachment_form(part, request.attached[part.sha256])

    return list(map(form, _parts(turn)))


def temperature_of(target: HttpTarget, request: Request) -> JsonValue:
    """Return the temperature to send; None for the model's default."""
    if request.temperature is None:
        return target.temperature
    return request.temperature


def limit_of(target: HttpTarget, request: Request) -> int | None:
    """Return the most tokens of an answer, without thoughts; None for the model's default."""
    limit = request.max_output_tokens or target.max_output_tokens
    return None if limit is None else int(limit)


def whole_limit_of(target: HttpTarget, request: Request) -> int | None:
    """Return the most tokens of an answer with thoughts, as APIs count them.

    None for the model's default.
    """
    limit = limit_of(target, request)
    if limit is None:
        return None
    return limit + (budget_of(target) or 0)


def budget_of(target: HttpTarget) -> int | None:
    """Return the thinking budget in tokens; None for the model's default."""
    if target.thinking_budget is None:
        return None
    return int(target.thinking_budget)


def effort(budget: int) -> str:
    """Return the level of effort nearest to a budget."""
    return level_of(budget, EFFORTS, "xhigh")


def level_of(budget: int, levels: Iterable[tuple[int, str]], above: str) -> str:
    """Return the level of a budget by the largest one of each; `above` all of them."""
    return next((level for most, level in levels if budget <= most), above)


def with_extra(body: JsonObject, extra: JsonObject | None) -> JsonObject:
    """Return a body with the target's `extra_body`, objects merged recursively."""
    merged = dict(body)
    for key, value in (extra or {}).items():
        present = merged.get(key)
        merged[key] = (
            with_extra(present, value)
            if isinstance(present, dict) and isinstance(value, dict)
            else value
        )
    return merged
