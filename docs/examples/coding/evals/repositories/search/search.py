"""Search in sorted lists."""


def find(values: list[int], wanted: int) -> int | None:
    """Return the place of a value, or None."""
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < high and values[low] == wanted else None
