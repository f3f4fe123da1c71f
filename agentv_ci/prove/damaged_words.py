"""Mistakes in single words of an answer: another unit, the opposite of a word.

In English, but for symbols of units.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_UNITS = """
kg:g g:kg mg:g t:kg lb:kg lbs:kg oz:g km:m m:km cm:mm mm:cm ft:m l:ml L:mL ml:l mL:L ms:s
s:ms min:h h:min °C:°F °F:°C %:‰ kB:MB KB:MB MB:GB GB:MB TB:GB KiB:MiB MiB:GiB GiB:MiB
W:kW kW:W Wh:kWh kWh:Wh Hz:kHz kHz:MHz MHz:GHz GHz:MHz €:$ $:€ £:€ ¥:€ USD:EUR EUR:USD
GBP:EUR CHF:EUR grams:kilograms kilograms:grams pounds:ounces ounces:pounds
meters:kilometers metres:kilometres kilometers:meters kilometres:metres miles:feet
feet:inches inches:feet liters:milliliters litres:millilitres second:minute
seconds:minutes minute:hour minutes:hours hour:minute hours:minutes day:week days:weeks
week:day weeks:days month:year months:years year:month years:months percent:permille
dollars:euros euros:dollars cents:dollars
"""
UNITS: Mapping[str, str] = dict(pair.split(":") for pair in _UNITS.split())
"""Unit → another one of the same kind."""
CURRENCIES = "$€£¥"
"""Units before their figure."""

_FIGURES = (
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty"
    r"|hundred|thousand|million)\b"
)
_LONGEST_FIRST = "|".join(map(re.escape, sorted(UNITS, key=len, reverse=True)))
# `s` behind a figure makes a decade of it.
_UNIT = re.compile(
    rf"(?:(?:{_FIGURES})[ \u00a0-]|\d(?!s(?!\w)))(?P<unit>{_LONGEST_FIRST})(?!\w)", re.IGNORECASE
)
_CURRENCY = re.compile(rf"(?P<unit>[{re.escape(CURRENCIES)}])(?=[ \u00a0]?\d)")

_OPPOSITES = """
accept:reject, accepts:rejects, accepted:rejected, approve:reject, approved:rejected,
allow:forbid, allows:forbids, allowed:forbidden, enable:disable, enables:disables,
enabled:disabled, include:exclude, includes:excludes, included:excluded, add:remove,
adds:removes, added:removed, increase:decrease, increases:decreases, increased:decreased,
higher:lower, highest:lowest, maximum:minimum, more than:less than, at least:at most,
above:below, inside:outside, before:after, earlier:later, early:late, first:last,
larger:smaller, large:small, longer:shorter, faster:slower, fast:slow, cheap:expensive,
hot:cold, better:worse, valid:invalid, correct:incorrect, possible:impossible, safe:unsafe,
legal:illegal, available:unavailable, required:optional, mandatory:optional, public:private,
positive:negative, success:failure, successful:unsuccessful, succeeds:fails, succeeded:failed,
passes:fails, passed:failed, north:south, east:west, buy:sell, won:lost
"""
_PAIRS = [pair.strip().split(":") for pair in _OPPOSITES.split(",")]
# Of two opposites of a word, the first one counts.
OPPOSITES: Mapping[str, str] = {other: word for word, other in reversed(_PAIRS)} | dict(_PAIRS)
"""Word → its opposite."""
# "First, open the lid" gives an order and states nothing.
_WORD = re.compile(
    rf"\b(?:{'|'.join(sorted(OPPOSITES, key=len, reverse=True))})\b(?!,)", re.IGNORECASE
)

Replacement = tuple[tuple[int, int], str]
"""The place of a word in a text, and another word."""


def other_units(text: str) -> Iterator[Replacement]:
    """Yield each unit of a figure, with another unit of the same kind."""
    for pattern in (_CURRENCY, _UNIT):
        for match in pattern.finditer(text):
            unit = match["unit"]
            other = UNITS.get(unit) or UNITS.get(unit.lower())
            # Of one letter, the other case is another unit, or none: 4 G.
            if other is not None and (unit in UNITS or len(unit) > 1):
                yield match.span("unit"), other


def opposites(text: str) -> Iterator[Replacement]:
    """Yield each word that has an opposite, with it."""
    for match in _WORD.finditer(text):
        yield match.span(), in_the_case_of(match[0], OPPOSITES[match[0].lower()])


def in_the_case_of(word: str, other: str) -> str:
    """Return another word, with a capital letter if the first one has it."""
    return other.capitalize() if word[0].isupper() else other
