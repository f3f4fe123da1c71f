"""An agent that knows how to fix eight of ten bugs; a real one would be a model with tools."""

from pathlib import Path

FIXES = {
    "(100 + discount)": "(100 - discount)",
    '"[^a-z0-9]"': '"[^a-z0-9]+"',
    "len(items) - size + 1": "len(items)",
    "year % 4 == 0 and year % 100 != 0": "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)",
    "    return ordered[middle]": "    return (ordered[middle] + ordered[~middle]) / 2",
    "low if low < high and values[low]": "low if low < len(values) and values[low]",
    'part.split("=")': 'part.split("=", 1)',
    "self.articles = articles": "self.articles = articles or {}",
    # Not enough: a span in another one makes it shorter.
    "low < joined[-1][1]": "low <= joined[-1][1]",
}

changed = []
for path in sorted(Path.cwd().glob("*.py")):
    text = path.read_text("utf-8")
    for wrong, right in FIXES.items():
        text = text.replace(wrong, right)
    if text != path.read_text("utf-8"):
        path.write_text(text, "utf-8")
        changed.append(path.name)
print(f"Changed {', '.join(changed)}." if changed else "I do not know what is wrong.")
