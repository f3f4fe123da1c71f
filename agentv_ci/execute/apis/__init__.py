"""What providers behind an HTTP API share: the wire, the vendors' formats, what their errors mean."""
