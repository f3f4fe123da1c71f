"""A code evaluator: reads the case as JSON on stdin, prints a score as JSON on stdout.

It compares the issues that the agent lists with those in its config.
"""

import json
import sys

case = json.load(sys.stdin)
answer = case["candidate_answer"].lower()
hits = [issue for issue in case["config"]["issues"] if issue.lower() in answer]
misses = [f"does not mention {issue}" for issue in case["config"]["issues"] if issue not in hits]
score = len(hits) / len(case["config"]["issues"])
print(json.dumps({"score": score, "hits": hits, "misses": misses, "reasoning": f"{len(hits)} issues found"}))
