import unittest

from total import total


class Test(unittest.TestCase):
    def test_discount(self):
        self.assertEqual(total([500, 500], discount=10), 900)

    def test_sum(self):
        self.assertEqual(total([150, 250]), 400)
