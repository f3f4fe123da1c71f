"""1, less a quarter for each rude word."""

import json
import sys

case = json.load(sys.stdin)
answer = case["candidate_answer"].lower()
rude = [word for word in case["config"]["rude"] if word in answer]
print(json.dumps({"score": max(0, 1 - len(rude) / 4), "misses": rude}))
