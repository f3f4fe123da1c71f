"""Scores whether the image is a file with its own bytes."""

import json
import sys
from pathlib import Path

(image,) = [part for part in json.load(sys.stdin)["input_segments"] if part["type"] == "image"]
is_png = image["media_type"] == "image/png" and Path(image["value"]).read_bytes().startswith(b"\x89PNG")
print(json.dumps({"score": float(is_png)}))
