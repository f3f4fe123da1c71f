#!/bin/sh
# Prints how many lamps are left.
echo "$((7 + $1))"
