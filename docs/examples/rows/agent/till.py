"""Adds up a receipt: lines of a number, an article and a price."""

import re
import sys
from decimal import Decimal

lines = re.findall(r"(\d+) x [\w ]+ at (\d+\.\d\d)", open(sys.argv[1], encoding="utf-8").read())
print(f"Total: {sum((int(number) * Decimal(price) for number, price in lines), Decimal(0)):.2f}")
