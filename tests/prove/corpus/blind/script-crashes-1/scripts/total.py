"""1 when order and total are those of the config."""

import json
import sys

case = json.load(sys.stdin)
answer = json.loads(case["candidate_answer"])
print(json.dumps({"score": 1 if answer == case["config"] else 0}))
