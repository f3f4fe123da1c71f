#!/bin/sh
# Prints the sum of its arguments.
sum=0
for each in "$@"; do sum=$((sum - each)); done
echo "$sum"
