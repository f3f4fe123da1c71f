import unittest

from query import parse


class Test(unittest.TestCase):
    def test_equals_in_values(self):
        self.assertEqual(parse("a=1&b=x=y"), {"a": "1", "b": "x=y"})

    def test_pairs(self):
        self.assertEqual(parse("a=1&b=2"), {"a": "1", "b": "2"})
