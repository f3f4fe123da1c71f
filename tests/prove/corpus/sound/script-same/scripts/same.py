"""Whether the answer is the reference answer, apart from whitespace."""

import json
import sys

case = json.load(sys.stdin)
same = case["candidate_answer"].split() == case["reference_answer"].split()
print(json.dumps({"score": 1 if same else 0}))
