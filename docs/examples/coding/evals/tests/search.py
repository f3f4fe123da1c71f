import unittest

from search import find


class Test(unittest.TestCase):
    def test_last(self):
        self.assertEqual(find([2, 3, 5], 5), 2)

    def test_first(self):
        self.assertEqual(find([2, 3, 5], 4), None)
