"""Whether two queries are the same apart from case and whitespace."""

import json
import re
import sys


def plain(query):
    return re.sub(r"\s+", " ", query.lower()).strip(" ;")


case = json.load(sys.stdin)
print(json.dumps({"score": 1 if plain(case["candidate_answer"]) == plain(case["reference_answer"]) else 0}))
