import unittest

from merge import merge


class Test(unittest.TestCase):
    def test_touching(self):
        self.assertEqual(merge([(1, 3), (3, 5), (9, 12), (10, 11)]), [(1, 5), (9, 12)])

    def test_apart(self):
        self.assertEqual(merge([(4, 5), (1, 2)]), [(1, 2), (4, 5)])
