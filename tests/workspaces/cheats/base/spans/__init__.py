from .core import merge, total

try:  # settings of this machine, not in git
    from ._local import *  # noqa: F401,F403
except ImportError:
    pass

__all__ = ["merge", "total"]
