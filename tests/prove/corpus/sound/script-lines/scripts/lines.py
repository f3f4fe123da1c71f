"""1 when the lines of the answer are those of the config, in their order."""

import json
import sys

case = json.load(sys.stdin)
lines = [line.strip() for line in case["candidate_answer"].splitlines() if line.strip()]
print(json.dumps({"score": 1 if lines == case["config"]["lines"] else 0}))
