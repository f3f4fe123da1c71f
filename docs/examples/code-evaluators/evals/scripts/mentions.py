"""The share of `config.words` that the answer mentions."""

import json
import sys

case = json.load(sys.stdin)
words = case["config"]["words"]
found = [word for word in words if word in case["candidate_answer"]]
missing = [word for word in words if word not in found]
print(
    json.dumps(
        {
            "score": len(found) / len(words),
            "hits": [f"mentions '{word}'" for word in found],
            "misses": [f"does not mention '{word}'" for word in missing],
            "reasoning": f"{len(found)} of {len(words)}",
        }
    )
)
