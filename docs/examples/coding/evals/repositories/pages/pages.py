"""Pages of a list."""


def pages(items: list[int], size: int) -> list[list[int]]:
    """Return the items in lists of at most `size`."""
    return [items[start : start + size] for start in range(0, len(items) - size + 1, size)]
