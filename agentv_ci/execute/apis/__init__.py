"""What API providers share: HTTP, the vendors' formats, and the meaning of errors."""

import sys

# httpx imports its command line, with rich and pygments, if it can. Without it, a run that asks an
# API computes a fifth less until its first question, which is some 60 ms.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None: cannot be imported
