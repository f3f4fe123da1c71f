import unittest

from spans.core import merge, total


class CoreTest(unittest.TestCase):
    def test_merge_touching(self):
        self.assertEqual(merge([(1, 3), (3, 5)]), [(1, 5)])

    def test_merge_overlap(self):
        self.assertEqual(merge([(4, 9), (1, 5)]), [(1, 9)])

    def test_total(self):
        self.assertEqual(total([(1, 5), (4, 9), (20, 21)]), 9)


if __name__ == "__main__":
    unittest.main()
