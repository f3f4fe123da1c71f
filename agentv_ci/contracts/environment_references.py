"""Environment references: `${{ NAME }}`."""

import re
from typing import Annotated

from pydantic import Field

OPENING = "${{"

ENVIRONMENT_REFERENCE = r"^\s*\$\{\{\s*[A-Za-z_][A-Za-z0-9_]*\s*\}\}\s*$"
"""Pattern of an environment reference in the published schemas."""

NO_REFERENCE = r"^([^$]|\$+(\{\$+)*([^${]|\{[^${]))*(\$+(\{\$+)*\{?)?$"
"""Pattern of a text without `${{` in the published schemas; not every reader of patterns knows
look-ahead.
"""

EnvironmentReference = Annotated[str, Field(pattern=ENVIRONMENT_REFERENCE)]
"""`${{ NAME }}`: the value of an environment variable, read when a run starts."""

REFERENCE_LIKE = re.compile(r"\$\{\{\s*([^{}]*?)\s*\}\}")
"""A text in the form of a reference, whatever it names."""

_REFERENCE = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


def variable_of(value: object) -> str | None:
    """Return the variable of a value that is an environment reference; None for other values."""
    reference = (
        _REFERENCE.fullmatch(value.strip()) if isinstance(value, str) and OPENING in value else None
    )
    return reference[1] if reference else None


def variables_in(text: str) -> list[str]:
    """Return the variables that a text refers to, in order."""
    return _REFERENCE.findall(text)
