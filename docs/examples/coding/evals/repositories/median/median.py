"""Statistics."""


def median(values: list[float]) -> float:
    """Return the middle value, or the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle]
