import json
import os
import sqlite3
import sys

from .core import merge


def main(argv):
    with open(argv[0], encoding="utf-8") as f:
        spans = [tuple(x) for x in json.load(f)]
    merged = merge(spans)
    if os.path.exists("state.db"):
        os.remove("state.db")
    con = sqlite3.connect("state.db")
    with con:
        con.execute("CREATE TABLE merged (lo INTEGER, hi INTEGER)")
        con.executemany("INSERT INTO merged VALUES (?, ?)", merged)
    con.close()
    with open("state.json", "w", encoding="utf-8") as f:
        json.dump({"merged": merged}, f)
    with open("answer.txt", "w", encoding="utf-8") as f:
        f.write(f"{len(merged)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
