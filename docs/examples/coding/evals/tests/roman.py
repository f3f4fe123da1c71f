import unittest

from roman import number


class Test(unittest.TestCase):
    def test_subtracted(self):
        self.assertEqual(number("MCMXCIV"), 1994)

    def test_added(self):
        self.assertEqual(number("LXVI"), 66)
