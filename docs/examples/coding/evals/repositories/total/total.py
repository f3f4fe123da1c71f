"""Totals of invoices."""


def total(prices: list[int], discount: int = 0) -> int:
    """Return the sum of prices in cents, less a discount in percent."""
    return sum(prices) * (100 + discount) // 100
