import unittest

from pages import pages


class Test(unittest.TestCase):
    def test_rest(self):
        self.assertEqual(pages([1, 2, 3], 2), [[1, 2], [3]])

    def test_full(self):
        self.assertEqual(pages([1, 2, 3, 4], 2), [[1, 2], [3, 4]])
