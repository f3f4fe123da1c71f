"""What API providers share: HTTP, the vendors' formats, and the meaning of errors."""

import sys

# httpx's command line, with rich and pygments, takes as long to import as all the rest; httpx does without it.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None: cannot be imported
