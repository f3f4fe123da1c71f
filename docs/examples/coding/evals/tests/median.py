import unittest

from median import median


class Test(unittest.TestCase):
    def test_even(self):
        self.assertEqual(median([4, 1, 3, 2]), 2.5)

    def test_odd(self):
        self.assertEqual(median([3, 1, 2]), 2)
