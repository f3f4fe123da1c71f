"""Spans of time."""


def merge(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans that overlap or touch."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if joined and low < joined[-1][1]:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined
