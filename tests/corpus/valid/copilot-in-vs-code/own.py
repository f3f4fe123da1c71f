"""Scores whether an answer belongs to its own question."""

import json
import sys

given = json.load(sys.stdin)
own = given["candidate_answer"] == given["question"].removeprefix("say ").upper()
print(json.dumps({"score": float(own), "hits": ["its own"] if own else [], "misses": [] if own else ["another's"]}))
