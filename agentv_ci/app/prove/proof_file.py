"""The file of a proof."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from agentv_ci.base.atomic import write_whole
from agentv_ci.base.left_files import read_named
from agentv_ci.base.model_errors import sentence
from agentv_ci.contracts.proof import Proof
from agentv_ci.errors import UsageError
from agentv_ci.jsonschema.schemas import schema_id


def write_proof(proof: Proof, path: Path) -> None:
    """Write a proof; raises OSError."""
    write_whole(path, lambda file: file.write(proof_text(proof).encode()))


def proof_text(proof: Proof) -> str:
    """Return a proof as JSON."""
    return json.dumps(proof.model_dump(by_alias=True), indent=2, ensure_ascii=False) + "\n"


def read_proof(path: Path) -> Proof:
    """Return the proof in a file; raises UsageError."""
    unreadable = f"'{path}' is not a proof that this version reads"
    try:
        data = json.loads(read_named(path))
        if isinstance(data, dict) and data.get("$schema") != schema_id("proof-v1"):
            raise UsageError(f"{unreadable}: its $schema is {data.get('$schema')}")
        return Proof.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{unreadable}: {sentence(error)}") from error
    except OSError as error:
        raise UsageError(
            f"cannot read '{path}': {error.strerror}", hint="write it with `agentv-ci prove`"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{unreadable}: {error}") from error
