"""Questions, providers and their services."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from agentv_ci.contracts.exchange import Environment, ProviderError, Request, Response
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.provider_services import ProviderServices
from agentv_ci.execute.providers import open_provider
from tests.support import FakeClock, clean_environment


def question(**given: Any) -> Request:
    """Return a question; `given` replaces its fields."""
    plain = {"case_id": "one", "prompt": "6 × 7?", "guidelines": "", "chat": (), "timeout_s": 30, "cwd": Path("/")}
    return Request(**{**plain, **given})


def target(**settings: Any) -> Target:
    """Return a resolved target."""
    return TypeAdapter[Target](Target).validate_python({"name": "it", **settings})


def context(
    root: Path = Path("/"),
    *,
    environment: Environment | None = None,
    log: list[str] | None = None,
    warned: list[str] | None = None,
    redact: Callable[[str], str] = lambda text: text,
) -> ProviderServices:
    """Return services of providers; lines and warnings go into the lists."""
    known = environment or FakeClock().environment()
    return ProviderServices(
        root=root,
        logs=root / "logs",
        environment=known,
        log=([] if log is None else log).append,
        warn=([] if warned is None else warned).append,
        redact=redact,
        pause=lambda _, wait_s: known.sleep(wait_s),
    )


def ask_all(
    asked: Target, requests: Sequence[Request], context: ProviderServices
) -> Sequence[Response | ProviderError]:
    """Ask one question after the other; return answers and failures."""

    async def main() -> Sequence[Response | ProviderError]:
        provider = open_provider(asked, context)
        found: list[Response | ProviderError] = []
        try:
            await provider.check()
            for request in requests:
                try:
                    found.append(await provider.ask(request))
                except ProviderError as error:
                    found.append(error)
        finally:
            await provider.close()
        return found

    return asyncio.run(main())


def ask(
    asked: Target,
    request: Request | None = None,
    root: Path = Path("/"),
    *,
    environ: Mapping[str, str] | None = None,
    **given: Any,
) -> Response | ProviderError:
    """Ask once; a failed check is a failure too."""
    environment = FakeClock(clean_environment(environ)).environment()
    try:
        return ask_all(asked, [request or question()], context(root, environment=environment, **given))[0]
    except ProviderError as error:
        return error


def response(asked: Target, request: Request | None = None, root: Path = Path("/"), **given: Any) -> Response:
    found = ask(asked, request, root, **given)
    assert isinstance(found, Response), found
    return found


def answer(asked: Target, request: Request | None = None, root: Path = Path("/"), **given: Any) -> str:
    return response(asked, request, root, **given).answer


def failure(asked: Target, request: Request | None = None, root: Path = Path("/"), **given: Any) -> ProviderError:
    found = ask(asked, request, root, **given)
    assert isinstance(found, ProviderError), found
    return found


@dataclass(slots=True)
class Session:
    """A provider that answers many questions at once, each with its case's id; `error` is raised instead."""

    error: Exception | None = None
    hangs: bool = False
    together: list[list[tuple[str, int | None]]] = field(default_factory=list)
    """By batch, cases and seeds."""
    alone: list[tuple[str, int | None]] = field(default_factory=list)
    """Cases and seeds of questions that were asked one by one."""
    ended: bool = False

    async def check(self) -> None: ...

    async def ask(self, request: Request) -> Response:
        self.alone.append((request.case_id, request.seed))
        return Response(f"single answer to {request.case_id}", (), has_trace=False)

    async def ask_together(self, requests: Sequence[Request]) -> Sequence[Response]:
        self.together.append([(request.case_id, request.seed) for request in requests])
        try:
            await asyncio.sleep(3600 if self.hangs else 0)
        finally:
            self.ended = True
        if self.error is not None:
            raise self.error
        return [Response(f"answer to {request.case_id}", (), has_trace=False) for request in requests]

    async def close(self) -> None: ...
