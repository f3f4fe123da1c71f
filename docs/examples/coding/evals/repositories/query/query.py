"""Query strings of URLs."""


def parse(query: str) -> dict[str, str]:
    """Return the parameters of a query string."""
    return dict(part.split("=") for part in query.split("&") if part)
