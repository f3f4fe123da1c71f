"""Whether the answer is the object of the config, with values of the same types."""

import json
import sys

case = json.load(sys.stdin)
try:
    answer = json.loads(case["candidate_answer"])
except ValueError:
    answer = None
wanted = case["config"]["object"]
same = json.dumps(answer, sort_keys=True) == json.dumps(wanted, sort_keys=True)
print(json.dumps({"score": 1 if same else 0}))
