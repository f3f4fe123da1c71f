import json
import sys

given = json.load(sys.stdin)
print(json.dumps({"score": 1, "hits": [f"{name}: {json.dumps(value)}" for name, value in given.items()]}))
