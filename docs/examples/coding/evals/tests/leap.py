import unittest

from leap import is_leap


class Test(unittest.TestCase):
    def test_centuries(self):
        self.assertEqual([is_leap(year) for year in (1900, 2000, 2100)], [False, True, False])

    def test_years(self):
        self.assertEqual([is_leap(year) for year in (2023, 2024)], [False, True])
