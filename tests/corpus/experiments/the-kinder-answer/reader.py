"""Prefers an answer that says thanks, else one that is not rude; between equal ones, the one shown first."""

import json
import re
import sys
from pathlib import Path

question = Path(sys.argv[1]).read_text("utf-8")
first, second = re.findall(r"<(?:first|second)_answer-\w+>\n(.*)\n</", question)


def kindness(answer: str) -> int:
    return ("Thank" in answer) - answer.startswith("No")


better = "first" if kindness(first) >= kindness(second) else "second"
print(json.dumps({"better": better, "reasoning": f"the {better} is at least as kind"}))
