import unittest

from stock import Stock


class Test(unittest.TestCase):
    def test_two_shops(self):
        Stock().add("lamp", 1)
        self.assertEqual(Stock().add("lamp", 1), 1)

    def test_add(self):
        self.assertEqual(Stock({"lamp": 2}).add("lamp", 1), 3)
