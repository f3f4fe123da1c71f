"""A small agent, so that the example needs no key and no network.

It is a real program: it reads the prompt it is given, looks at the guidelines and files in it, and works on them by
rules. It reports its answer and the tools it used as JSON.

    python3 agent.py PROMPT_FILE
"""

import json
import re
import sys
from pathlib import Path

FILE = re.compile(r'<file path="(?P<path>[^"]+)">\n(?P<text>.*?)\n</file>', re.DOTALL)
TURN = re.compile(r"^@\[(\w+)\]:$", re.MULTILINE)

COMMENT = """\
/**
 * Add two numbers.
 * @param {number} a
 * @param {number} b
 */
"""

CHECKS = (
    ("JSDoc", "no JSDoc comment", lambda code: "/**" not in code),
    ("`var`", "`var` instead of `const` or `let`", lambda code: bool(re.search(r"\bvar\b", code))),
    ("`===`", "`!=` instead of `===`", lambda code: bool(re.search(r"[^=!]==[^=]|!=[^=]", code))),
)


def main() -> None:
    prompt = Path(sys.argv[1]).read_text(encoding="utf-8")
    calls, files = read_files(prompt)
    answer = answer_to(prompt, files)
    print(json.dumps({"output_messages": [{"role": "assistant", "content": answer, "tool_calls": calls}]}))


def read_files(prompt: str) -> tuple[list[dict], dict[str, str]]:
    """Return the files in the prompt, and one tool call for each that was read."""
    files = {match["path"]: match["text"] for match in FILE.finditer(prompt)}
    calls = [{"tool": "read_file", "input": {"path": path}, "output": text} for path, text in files.items()]
    return calls, files


def answer_to(prompt: str, files: dict[str, str]) -> str:
    question = TURN.split(FILE.sub("", prompt))[-1]
    scripts = {path: text for path, text in files.items() if path.endswith(".js")}
    if scripts:
        return "\n".join(review(path, code, guidelines_of(files)) for path, code in scripts.items())
    if "json" in question.lower():
        return json.dumps(profile(prompt))
    if "name" in question.lower():
        return f"Your name is {name_in(prompt)}."
    return write_function(question, guidelines_of(files))


def guidelines_of(files: dict[str, str]) -> str:
    return "\n".join(text for path, text in files.items() if path.endswith(".instructions.md"))


def review(path: str, code: str, guidelines: str) -> str:
    found = [issue for rule, issue, breaks in CHECKS if rule in guidelines and breaks(code)]
    return f"{Path(path).name} breaks {len(found)} guidelines:\n" + "\n".join(f"- {issue}" for issue in found)


def write_function(question: str, guidelines: str) -> str:
    match = re.search(r"called `?(\w+)`?", question)
    name = match[1] if match else "answer"
    comment = COMMENT if "JSDoc" in guidelines else ""
    keyword = "const" if "`const`" in guidelines else "var"
    return f"```js\n{comment}function {name}(a, b) {{\n  {keyword} sum = a + b;\n  return sum;\n}}\n```"


def profile(prompt: str) -> dict:
    numbers = re.findall(r"\b\d+\b", TURN.split(prompt)[-1])
    return {"name": name_in(prompt), "age": int(numbers[0]) if numbers else None}


def name_in(prompt: str) -> str:
    match = re.search(r"(?:my name is|I am) ([A-Z]\w+)", prompt)
    return match[1] if match else "unknown"


if __name__ == "__main__":
    main()
