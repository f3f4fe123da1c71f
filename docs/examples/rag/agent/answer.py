"""Answers with the sentence of the passages that shares most words with the question, and names its passage."""

import re
import sys
from pathlib import Path

STOP = {"the", "a", "of", "i", "is", "do", "how", "to", "can", "who", "what", "my", "take", "long", "does"}


def words(text):
    """Return the words that matter, without a plural s."""
    return {word.rstrip("s") for word in re.findall(r"[a-z0-9]+", text.lower())} - STOP


question = words(open(sys.argv[1], encoding="utf-8").read())
passages = sorted(Path(__file__).parent.parent.glob("passages/*.txt"))
sentences = [(path, each) for path in passages for each in re.findall(r"[^.]+\.", path.read_text("utf-8"))]
path, best = max(sentences, key=lambda each: len(words(each[1]) & question))
print(f"{best.strip()} [{path.stem}]" if words(best) & question else "The passages do not say.")
