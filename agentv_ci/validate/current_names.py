"""Older names and other spellings in a document, and what they are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, get_args

from agentv_ci.contracts.base import JsonValue, fields_of, spellings
from agentv_ci.contracts.diagnostics import Kind
from agentv_ci.contracts.source import SHORT_FORMS, Pointer
from agentv_ci.validate.structure import contract_for
from agentv_ci.validate.walk import mappings

KINDS = ("type", "provider")


class Renaming(NamedTuple):
    """A key or a kind in another spelling, and its current name."""

    pointer: Pointer
    is_key: bool
    name: str


def renamings(kind: Kind, data: JsonValue) -> Iterator[Renaming]:
    """Yield the keys in another spelling than that of the contract, and kinds by older names.

    The document must be valid. A short form is as current as its field, and of two spellings in one
    mapping none is chosen.
    """
    for contract, mapping, pointer in mappings(contract_for(kind), data):
        names = spellings(contract)
        given = Counter(names[key][0] for key in mapping if key in names)
        for key, value in mapping.items():
            field = names[key][0] if key in names else key
            if key != field and given[field] == 1 and SHORT_FORMS.get(field) != key:
                yield Renaming((*pointer, key), True, field)
            if field in KINDS and value in contract.older_kinds:
                current, *_ = get_args(fields_of(contract)[field].annotation)
                yield Renaming((*pointer, key), False, str(current))
