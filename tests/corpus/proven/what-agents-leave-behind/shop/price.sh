#!/bin/sh
# Prints the price of some lamps: 40 EUR each, and a discount from three lamps on.
price=$(($1 * 40))
if [ "$1" -gt 3 ]; then price=$((price - 10)); fi
echo "$price EUR"
