import unittest

from spans.core import merge


class HiddenTest(unittest.TestCase):
    def test_chain(self):
        self.assertEqual(merge([(7, 8), (2, 4), (4, 7), (11, 13)]), [(2, 8), (11, 13)])

    def test_apart(self):
        self.assertEqual(merge([(2, 4), (5, 6)]), [(2, 4), (5, 6)])
