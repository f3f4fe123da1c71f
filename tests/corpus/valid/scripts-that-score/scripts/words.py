import json
import sys

case = json.load(sys.stdin)
answer = case["candidate_answer"]
wanted = case["config"]["wanted"]
hits = [word for word in wanted if word in answer]
misses = [f"no '{word}'" for word in wanted if word not in answer]
reasoning = "strict" if "--strict" in sys.argv else "lenient"
print(json.dumps({"score": len(hits) / len(wanted), "hits": hits, "misses": misses, "reasoning": reasoning}))
