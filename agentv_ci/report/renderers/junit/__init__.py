"""The JUnit report."""
