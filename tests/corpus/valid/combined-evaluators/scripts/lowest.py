"""The lowest score of all members counts."""

import json
import sys

results = json.load(sys.stdin)["results"]
name, worst = min(results.items(), key=lambda item: item[1]["score"])
print(json.dumps({"score": worst["score"], "misses": worst["misses"], "reasoning": f"{name} is the lowest"}))
