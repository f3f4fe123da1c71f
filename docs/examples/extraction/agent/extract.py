"""Reads who studied what, where and when; without a model."""

import json
import re
import sys

text = " ".join(open(sys.argv[1], encoding="utf-8").read().split())
year = re.search(r"\b1[0-9]{3}\b", text)
degree = re.search(r"degree of (.+?) of the (University of \w+)", text)
place = re.search(r"proceeded to (\w+)", text)
found = {
    "year": int(year[0]) if year else None,
    "degree": degree[1] if degree else None,
    "university": degree[2] if degree else None,
    "then": place[1] if place else None,
}
print(json.dumps(found))
