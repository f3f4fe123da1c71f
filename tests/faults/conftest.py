"""What tests of faults share."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no worker ends alone."""
    items.sort(key=lambda item: item.path.name != "test_ten_thousand.py")
