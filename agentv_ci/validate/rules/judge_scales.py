"""AV333: which scale the prompt of a judge asks for.

Numbers alone say nothing: a prompt may be about pages 1 to 10. They are a scale in a sentence that
asks for a rating, unless they count something, or the sentence says what an answer contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_READ = 100_000
"""Characters of a prompt that are looked at."""
MAX_SENTENCE = 1_000
MAX_WORD = 40

_DIGITS = {
    "zero": 0,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "ten": 10,
}
_DIGITS |= {"twenty": 20, "a hundred": 100, "one hundred": 100, "hundred": 100}
_NUMERAL = re.compile(rf"\b(?:{'|'.join(sorted(_DIGITS, key=len, reverse=True))})\b")
_VARIABLE = re.compile(r"\{\{[^{}]{0,500}\}\}")
_SENTENCE = re.compile(r"(?<=[.?!;])(?<!e\.g\.)\s|[\n。？！]")
_CONDITION = re.compile(r" (?:if|when|unless|whether|because) ")

_RATE = r"(?:rate|score|grade|mark|rank|judge|evaluate|assess|award)"
_ASKS = re.compile(
    r"\b(?:rat(?:e|es|ed|ing|ings)|scor(?:e|es|ed|ing)|grad(?:e|es|ed|ing)|mark|marks|judge"
    r"|judgement|evaluate|assess|rank|scale|likert|points?|stars?|percent(?:age)?|give (?:it|this"
    r"|the (?:answer|response|reply))|[xn]/\d+|(?:give|return|output|print|(?:reply|respond"
    r"|answer) with) (?:only )?(?:an? )?(?:\w+ )?(?:number|integer)|bewerte\w*|benote\w*|skala"
    r"|note[rnz]?|punkten?|échelle|évalue[rz]?|escala|puntúa|califica|valuta|voto)\b"
    r"|^\W{0,9}(?:to what (?:extent|degree)|what would you|wie (?!viel|lang|oft))"
    r"|^\W{0,9}how (?!many|much|long|often|old|far|to\b)|评分|打分|分数|評価|採点"
)
"""Asks for a rating."""
_SAYS_WHAT = re.compile(
    r"^\W{0,9}(?:\d{1,2}[.)] )?(?:do|does|did|is|are|was|were|has|have|had|can|could|will|would"
    r"|should|must|if|whether|check|verify|confirm|ensure|make sure|names|says|mentions|states"
    r"|explains|lists|contains|includes|gives|describes|shows|asks|quotes|(?:the|an?|our|this|that"
    r"|its?|users?|customers?|they)\b(?: \w+){0,3}? (?:must|should|has|have|needs?|may|can|could"
    r"|asks?|was|were|names?|says?|mentions?|states?|explains?|gives?|lists?|contains?|includes?"
    r"|wants?|gave|rates?|rated|said|goes|runs|ranges?|covers?))\b"
)
"""Says what an answer contains, or asks whether it does."""
_RATES_TOO = re.compile(
    rf"\b(?:and|then|,) (?:then )?(?:{_RATE}|give (?:it|this|the answer))\b"
    r"|\bbe (?:rated|scored|graded|marked|judged|assessed|evaluated|awarded)\b"
    r"|\b(?:score|rating|grade|mark) (?:must|should|has|is|are|may|can|will|ranges?|goes)\b"
)
"""Asks for a rating nevertheless."""

_NUMBER = r"-?(?:\d{1,3}|1000)(?:\.\d{1,2})?"
_WHOLE = r"(?P<high>\d{1,4})(?![\d/]|\.\d)"
_AFTER = (
    r"(?=\s*(?:$|[.,;:!?)\]}\"'`*(%…，：；）】|]|[-–—]\s|分|点"
    r"|\b(?:where|with|in which|based|according|depending|for|how|on|if|by|using|as|in terms"
    r"|inclusive|being|and|or|only|do|does|would|scale|score|rating|likert|stars?|points?|marks?"
    r"|percent|per cent|punkten?|sternen?|prozent|étoiles|estrellas|puntos)\b))"
)
"""What follows a scale: no noun that it would count."""
_MEANING = r"(?: ?%| ?\([^()]{1,40}\)| ?[a-z]{1,12}(?= to\b)|(?: =| being| is)(?: \w+){1,4},?)?"
"""What may stand between the ends of a scale: the meaning of the first one."""
_RANGE = re.compile(
    rf"(?<![\w.,/:-])(?P<low>{_NUMBER}){_MEANING}"
    r"(?: ?(?:\.{2,3}|[-–—…~,→]) ?|-to-| (?:to|through|thru|and|bis|à|al?) (?:an? )?|到|至)"
    rf"(?P<high>{_NUMBER})(?![\d:/-]|\.\d){_AFTER}"
)
_NOUN = re.compile(
    r"\b(?!this|answers|responses|replies|scores|ratings|grades|stars|marks)[a-z]{2,}[^\Ws]s $"
)
"""What precedes a range when it numbers something, such as pages."""
_OUT_OF = re.compile(
    r"(?P<before>\b\w{1,30} )?(?:\bout of (?:an? )?|\bvon (?:maximal )?|\bsur "
    rf"|(?<![\w/])[xyn_?]? ?/ ?|(?<![\w/.])\d{{1,2}}/(?=5|10|20)){_WHOLE}{_AFTER}"
)
_COUNTED = re.compile(r"\d+|all|each|any|every|most|many|none|few|are|is|was|were|more|least|than")
"""What precedes `out of` when it is a share of something."""
_NAMED = re.compile(
    r"\b\d{1,3}[ -](?:point|star|step|level)s?[ -](?:likert[ -])?(?:scale|rating|system)\b"
    r"|\blikert\b|\bscale of \d{1,4}\b(?! to (?:0|1)\b)|\b\d{1,2}er-skala\b|\b(?:as|in"
    r"|into) (?:an? )?(?:whole |integer )?(?:%|(?:percent|percentages?|per cent|prozent)\b)"
    r"|\bpercentage (?:score|from|between)\b|\bwhat percent(?:age)? of\b|\bpourcentage\b"
    r"|\bporcentaje\b|\bhow many (?:stars|points|marks)\b|\bstar rating\b|\bnumber of stars\b"
    r"|\b[2-9] stars\b|\bin stars\b|\ba (?:point|mark) (?:each|per|for (?:each|every))\b"
)
_POINTS = re.compile(
    r"(?<![\w.,])(?P<number>\d{1,4}(?:\.\d{1,2})?) (?:\w+ )?(?:points?|marks?)\b"
    r"(?P<each>.{0,30}\b(?:each|every|per)\b)?"
)
_VALUE = re.compile(
    r"\b(?:score|give|award|assign|return|output|mark|rate)(?: it)?(?: an?)? "
    r"(?P<high>\d{1,3}) (?:if|when|for|only|unless)\b"
)
_MOST = re.compile(
    rf"\b(?:max(?:imum)?|highest|best|top)(?: possible)? (?:score|grade|mark|rating)(?: is| of| ="
    rf"|:)? ?{_WHOLE}"
)
_LISTED = re.compile(
    r"(?<![\w.,/-])\d(?: ?[,/|] ?\d){1,9}(?:,? (?:or|and) |[/|, ]+)(?P<high>\d{1,2})\b(?!\.\d)"
)
_GRADE = re.compile(
    r"(?<![\w.,/-])(?P<high>\d{1,3}) ?(?:=|:|–|—|-|\(|means|is|being|for|→) ?(?:the |very "
    r"|completely |fully )?(?:best|worst|perfect|excellent|poor|terrible|awful|bad|good|great|fair"
    r"|average|mediocre|acceptable|outstanding|flawless|ideal|highest|lowest|top|exceptional)\b"
)


def asked_scale(prompt: str) -> str | None:
    """Return the words of a prompt that ask for a scale other than 0 to 1; None without any."""
    text = _VARIABLE.sub(" … ", prompt[:MAX_READ].lower())
    text = _NUMERAL.sub(lambda match: str(_DIGITS[match[0]]), text)
    for written in _SENTENCE.split(text):
        sentence = " ".join(written[:MAX_SENTENCE].split())
        if _asks(sentence):
            for phrase in _scales(sentence):
                return phrase.strip()
    return None


def _asks(sentence: str) -> bool:
    """Whether a sentence may ask for a rating."""
    if _SAYS_WHAT.search(sentence) and not _RATES_TOO.search(sentence):
        return False
    return any(pattern.search(sentence) for pattern in (_ASKS, _GRADE, _VALUE))


def _scales(sentence: str) -> Iterator[str]:
    """Yield the words of a sentence that asks for a rating that name another scale than 0 to 1."""
    asked = _CONDITION.split(sentence)[0]
    for match in _RANGE.finditer(asked):
        ends = float(match["low"]), float(match["high"])
        if (min(ends) < 0 or max(ends) > 1) and not _NOUN.search(
            asked[: match.start()][-MAX_WORD:]
        ):
            yield match[0]
    for match in _OUT_OF.finditer(asked):
        if int(match["high"]) > 1 and not _COUNTED.fullmatch((match["before"] or "").strip()):
            yield match[0]
    for match in _POINTS.finditer(asked):
        number = float(match["number"])
        if number > 1 or (number == 1 and match["each"]):
            yield match[0]
    for pattern, text in ((_VALUE, sentence), (_MOST, asked), (_LISTED, asked), (_GRADE, asked)):
        yield from (match[0] for match in pattern.finditer(text) if int(match["high"]) > 1)
    yield from (match[0] for match in _NAMED.finditer(asked))
