"""A shop's stock."""


class Stock:
    """How many of each article there are."""

    def __init__(self, articles: dict[str, int] = {}) -> None:  # noqa: B006  # the bug
        self.articles = articles

    def add(self, article: str, number: int) -> int:
        """Add articles, and return how many there are now."""
        self.articles[article] = self.articles.get(article, 0) + number
        return self.articles[article]
