"""The lowest score of all members counts."""

import json
import sys

given = json.load(sys.stdin)
name, worst = min(given["results"].items(), key=lambda item: item[1]["score"])
hits = [f"{given['eval_id']}: {each} {json.dumps(result)}" for each, result in given["results"].items()]
found = {"score": worst["score"], "hits": hits, "misses": worst["misses"], "reasoning": f"{name} is the lowest"}
print(json.dumps(found))
