"""The quarantine: cases that run and are reported, and do not gate, until a date."""

from datetime import date
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from agentv_ci.contracts.base import Authored, Items, Maybe, Name, Recorded, meanings
from agentv_ci.contracts.cases import CaseKey, fits
from agentv_ci.contracts.source import QUARANTINE_SCHEMA

QuarantineState = Literal["active", "ending", "expired"]
"""`ending`: it expires within two weeks; `expired`: its cases gate again."""

ENDING_DAYS = 14
LONG_DAYS = 90
"""More days than this are worth a warning."""


def last_day(expires: str) -> date | None:
    """Return the last day of a quarantine; None if there is no such date."""
    try:
        return date.fromisoformat(expires)
    except ValueError:
        return None


def state_on(today: date, expires: str) -> QuarantineState:
    """Return the state of a quarantine on a day; a date that does not exist has passed."""
    day = last_day(expires)
    if day is None or day < today:
        return "expired"
    return "ending" if (day - today).days <= ENDING_DAYS else "active"


class QuarantineEntry(Authored):
    """Cases in quarantine, and until when."""

    id: Name = Field(description="Id or glob of the cases.")
    suite: Maybe[Name] = Field(
        None,
        description="Their eval file: a path or glob from the repository root, or a name without "
        "suffixes.",
    )
    target: Maybe[Name] = Field(
        None, description="Target or glob of targets that answer them; default: every target."
    )
    reason: Name = Field(description="Why they do not gate.")
    owner: Name = Field(description="Who ends the quarantine.")
    expires: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")] = Field(
        description="Last day of the quarantine (UTC), such as 2026-03-31."
    )
    issue: Maybe[Annotated[str, Field(pattern=r"^https?://\S+$")]] = Field(
        None, description="Address of the issue about it."
    )

    def covers(self, key: CaseKey) -> bool:
        """Whether a case is one of these."""
        return fits(key, self.id, self.suite, self.target)


class QuarantineDocument(Authored):
    """A `.agentv/quarantine.yaml` file."""

    free_keys: ClassVar[bool] = True

    schema_: Maybe[str] = Field(
        None,
        alias="$schema",
        description=f"`{QUARANTINE_SCHEMA}` or the schema's $id.",
        examples=[QUARANTINE_SCHEMA],
    )
    quarantine: Items[QuarantineEntry] = Field(
        description="Cases in quarantine; of several entries, the first counts."
    )


class Quarantine(Recorded):
    """An entry of the quarantine that has cases in a run."""

    id: str = Field(description="Id or glob of the cases.")
    suite: str | None = Field(None, description="Their eval file or a glob; null for every one.")
    target: str | None = Field(None, description="Their target or a glob; null for every one.")
    reason: str = Field(description="Why they do not gate.")
    owner: str = Field(description="Who ends the quarantine.")
    expires: str = Field(description="Last day of the quarantine.")
    issue: str | None = Field(None, description="Address of the issue about it.")
    state: QuarantineState = Field(
        description="Whether it counted in this run.",
        json_schema_extra=meanings(
            active="Its cases did not gate.",
            ending="Its cases did not gate, and it expires within two weeks.",
            expired="Its cases gate again.",
        ),
    )

    @classmethod
    def of(cls, entry: QuarantineEntry, today: date) -> Self:
        """Return an entry with its state on a day."""
        return cls(**entry.model_dump(), state=state_on(today, entry.expires))

    def covers(self, key: CaseKey) -> bool:
        """Whether a case is one of these, and does not gate."""
        return self.state != "expired" and fits(key, self.id, self.suite, self.target)
