"""Pointers of Git LFS, which Git checks out where the files themselves are not fetched."""

LFS_POINTER = "a pointer of Git LFS, not the file itself; run: git lfs pull"
MAX_POINTER_BYTES = 1023
_FIRST_WORDS = (b"version https://git-lfs.github.com/spec/v", b"version https://hawser.github.com/spec/v")


def is_lfs_pointer(content: bytes) -> bool:
    """Whether Git checked out a pointer instead of a file of Git LFS (its specification, "The Pointer")."""
    return len(content) <= MAX_POINTER_BYTES and content.startswith(_FIRST_WORDS)
