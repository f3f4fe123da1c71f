import unittest

from spans.core import merge, total


class CoreTest(unittest.TestCase):
    def test_merge_touching(self):
        self.assertEqual(merge([(1, 3), (3, 5)]), [(1, 5)])
        self.assertEqual(merge([(10, 12), (12, 17), (17, 18)]), [(10, 18)])

    def test_merge_overlap(self):
        self.assertEqual(merge([(4, 9), (1, 5)]), [(1, 9)])
        self.assertEqual(merge([(40, 90), (91, 95)]), [(40, 90), (91, 95)])

    def test_total(self):
        self.assertEqual(total([(1, 5), (4, 9), (20, 21)]), 9)


if __name__ == "__main__":
    unittest.main()
