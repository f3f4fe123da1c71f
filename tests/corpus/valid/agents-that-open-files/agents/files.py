"""What the scripted agents share: they open the files that their prompt names."""

import re
from pathlib import Path
from urllib.parse import unquote


def opened(prompt: str) -> str:
    """Return what stands in the linked files, on one line."""
    paths = re.findall(r"\(file://([^)]+)\)", prompt)
    return " ".join(Path(unquote(path)).read_text().strip() for path in paths)
