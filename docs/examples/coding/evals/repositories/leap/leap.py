"""Calendars."""


def is_leap(year: int) -> bool:
    """Return whether a year of the Gregorian calendar has 366 days."""
    return year % 4 == 0 and year % 100 != 0
