"""Lazy classes for contracts that few documents need, such as those of the other kinds of targets."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, TypeVar, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_plain_validator_function

T = TypeVar("T")


class Later(type):
    """The type of lazy classes: one imports its contract when it is used, and has no instances before."""

    module: str
    kinds: tuple[str, ...]
    """The values of the key of its union that mean the contract."""
    contract: type | None
    """None until it is imported."""

    def __instancecheck__(cls, instance: object) -> bool:
        return (contract := cls.contract) is not None and isinstance(instance, contract)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return (contract := cls.contract) is not None and issubclass(subclass, contract)

    def __call__(cls, **fields: object) -> object:
        """Return an instance of the contract."""
        return contract_of(cls)(**fields)

    def __getattr__(cls, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)  # asked for by `typing` and pydantic when a field is declared
        return getattr(contract_of(cls), name)

    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        if cls.kinds:
            return handler.generate_schema(contract_of(cls))

        def validated(value: object) -> object:
            contract: Any = contract_of(cls)
            return contract.model_validate(value, by_alias=True, by_name=False)

        # The type of a field that few documents have.
        return no_info_plain_validator_function(validated, metadata={"contract": cls})


_LAZY: dict[tuple[str, str], Later] = {}
"""Module and name of a contract → its lazy class."""


def imported(contract: type) -> None:
    """Let the lazy class of a contract know it, if there is one: it is asked for every part of every document."""
    if (lazy := _LAZY.get((contract.__module__, contract.__name__))) is not None:
        lazy.contract = contract


def later(name: str, module: str, *kinds: str) -> Later:
    """Return a lazy class for a contract in a module beside this one.

    It is defined beside an import under TYPE_CHECKING, so that type checkers see the contract.
    """
    place = f"{__package__}.{module}"
    known = getattr(sys.modules.get(place), name, None)
    return _LAZY.setdefault((place, name), Later(name, (), {"module": place, "kinds": kinds, "contract": known}))


def contract_of(each: T) -> T:
    """Return a contract; import that of a lazy class."""
    if not isinstance(each, Later):
        return each
    contract: Any = each.contract or getattr(import_module(each.module), each.__name__)
    return cast("T", contract)
