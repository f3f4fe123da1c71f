"""The share of the answer's words that are in the reference answer, in this order."""

import json
import sys

case = json.load(sys.stdin)
given = case["candidate_answer"].split()
wanted = case["reference_answer"].split()
same = sum(a == b for a, b in zip(given, wanted))
share = same / len(given)
print(json.dumps({"score": 1 if share == 1 and len(given) == len(wanted) else 0}))
