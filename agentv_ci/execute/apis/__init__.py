"""What API providers share: HTTP, the vendors' formats, and the meaning of errors."""
