"""The JSON output of `validate`."""

from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import Recorded, Records


class DiagnosticRecord(Recorded):
    """One diagnostic."""

    rule: Annotated[str, Field(pattern=r"^AV\d{3}$")] = Field(description="The rule's id.")
    severity: Literal["error", "warning"] = Field(description="Errors fail; warnings fail with --strict.")
    message: str = Field(description="What is wrong.")
    path: str = Field(description="The file's absolute path.")
    line: Annotated[int, Field(ge=1)] = Field(description="First line.")
    column: Annotated[int, Field(ge=1)] = Field(description="First column.")
    end_line: Annotated[int, Field(ge=1)] = Field(description="Last line.")
    end_column: Annotated[int, Field(ge=1)] = Field(description="Column after the last character.")
    pointer: str | None = Field(description="Path in the document, such as `evalcases[0].id`.")
    case: str | None = Field(description="The case's id.")
    target: str | None = Field(description="The target's name.")
    hint: str | None = Field(description="What to do.")


class FileRecord(Recorded):
    """One checked file."""

    path: str = Field(description="The file's absolute path.")
    kind: Literal["eval", "targets", "config", "judge-set", "quarantine", "experiment"] | None = Field(
        description="Kind of the file."
    )
    valid: bool = Field(description="Whether it has no errors (with --strict, no warnings either).")
    diagnostics: Records[DiagnosticRecord] = Field(description="Diagnostics in the order of the file.")


class DiagnosticsSummary(Recorded):
    """Counts over all files; `files` = `passed` + `failed`."""

    files: int = Field(description="Files checked.")
    passed: int = Field(description="Files without errors.")
    failed: int = Field(description="Files with errors.")
    skipped: int = Field(description="YAML files that are not agentv-ci documents.")
    errors: int = Field(description="Errors in all files.")
    warnings: int = Field(description="Warnings in all files.")


class DiagnosticsDocument(Recorded):
    """What `validate --format json` prints."""

    schema_: str = Field(alias="$schema", description="This schema's $id.")
    files: Records[FileRecord] = Field(description="The checked files.")
    summary: DiagnosticsSummary = Field(description="Counts over all files.")

    @property
    def errors_first(self) -> list[DiagnosticRecord]:
        """The diagnostics of all files, errors before warnings."""
        diagnostics = [each for file in self.files for each in file.diagnostics]
        return sorted(diagnostics, key=lambda each: each.severity != "error")
