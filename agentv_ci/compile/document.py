"""Write a plan as a JSON document, case by case."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, BinaryIO

from msgspec import Struct
from pydantic import BaseModel
from pydantic_core import to_json

from agentv_ci.compile.digest import StreamedDigest, digests_of
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.packed_cases import packed
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.jsonschema.schemas import schema_id


def as_published(part: BaseModel) -> JsonObject:
    """Return a plan or a part of one as published data."""
    return part.model_dump(mode="json", by_alias=True, exclude_none=True)


def _json_of(case: PlanCase) -> bytes:
    return to_json(case, by_alias=True, exclude_none=True, indent=2)


def sealed(cases: Iterable[PlanCase], rest: Callable[[], Plan]) -> Plan:
    """Return a plan with its digest.

    `rest` returns everything but the cases, after the last one.
    """
    digest = StreamedDigest(schema_id("plan-v1"))

    def added() -> Iterator[PlanCase]:
        for case in cases:
            digest.add(_json_of(case))
            yield case

    update = {"cases": packed(added()), "digest": digest.end(rest_of(plan := rest()))}
    return plan.model_copy(update=update)


def resealed(cases: Iterable[PlanCase], plan: Plan) -> Plan:
    """Return the plan with changed cases, and all digests."""
    digests = digests_of(plan)
    return sealed(
        (case.model_copy(update={"digest": digests.of(case)}) for case in cases), lambda: plan
    )


class PlanWriter:
    """Writes a plan case by case, the cases to a scratch file. All methods raise OSError."""

    def __init__(self, schema: str, scratch: BinaryIO) -> None:
        self._digest = StreamedDigest(schema)
        self._scratch = scratch
        self._separator = b"\n    "
        self.cases = 0

    def add(self, cases: Iterable[PlanCase], watch: Callable[[int], None]) -> None:
        """Write the next cases; call `watch` with the number of cases after each."""
        for case in cases:
            text = _json_of(case)
            # Line ends in JSON strings are escaped, so this only indents.
            self._scratch.write(self._separator + text.replace(b"\n", b"\n    "))
            self._separator = b",\n    "
            self._digest.add(text)
            self.cases += 1
            watch(self.cases)

    def end(self, head: Plan) -> PlanDocument:
        """Return the document; `head` is the plan without cases."""
        complete = head.model_copy(update={"digest": self._digest.end(rest_of(head))})
        text = complete.model_dump_json(
            by_alias=True, exclude_none=True, exclude={"cases"}, indent=2
        )
        return PlanDocument(text.removesuffix("\n}").encode("utf-8"), self._scratch, self.cases)


class PlanDocument(Struct, frozen=True):
    """A plan's text, while its scratch file is open."""

    head: bytes
    """The document without the cases and the closing bracket."""
    scratch: BinaryIO
    """The file with the cases."""
    cases: int

    def copy_to(self, out: IO[bytes]) -> None:
        """Write the whole document; raises OSError."""
        out.write(self.head + b',\n  "cases": [')
        self.scratch.seek(0)
        shutil.copyfileobj(self.scratch, out)
        out.write(b"\n  ]\n}\n")


def rest_of(plan: Plan) -> JsonObject:
    """Return everything but the cases, the digest and `$schema`, as published."""
    # Part by part: building the serializer of whole plans takes 10 ms.
    return {
        "suites": list(map(as_published, plan.suites)),
        "targets": _published(plan.targets),
        "files": _published(plan.files),
    }


def _published(parts: Mapping[str, BaseModel]) -> JsonObject:
    return {key: as_published(part) for key, part in parts.items()}
