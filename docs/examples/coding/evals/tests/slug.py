import unittest

from slug import slug


class Test(unittest.TestCase):
    def test_several_signs(self):
        self.assertEqual(slug("Ships, & crews!"), "ships-crews")

    def test_words(self):
        self.assertEqual(slug("Two Words"), "two-words")
