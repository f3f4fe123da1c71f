"""Score the tool calls of an agent as promptfoo and AgentV do.

Settings: `kind` (such as `tool-sequence` or `skill-used`), `value`, and optionally `negated`.
"""

import json
import re
import sys

SHELLS = {"exec_command", "local_shell", "shell"}


def matches(name, matcher):
    """Whether a name is the one that a matcher names; `*` and `?` stand for any characters."""
    if isinstance(matcher, dict):
        matcher = matcher.get("pattern") or matcher.get("name") or "*"
    pattern = re.escape(matcher).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(pattern, name, re.IGNORECASE | re.DOTALL) is not None


def is_command(call):
    """Whether a call is a command of a shell, which is a step of another type than a tool."""
    arguments = call.get("input")
    return call["tool"].lower() in SHELLS and isinstance(arguments, dict) and bool(arguments)


def skills_of(call):
    """Return the skills that a call uses: by the tool for them, or by reading their files."""
    arguments = call.get("input") if isinstance(call.get("input"), dict) else {}
    if call["tool"].lower() == "skill":
        return [str(arguments.get("skill") or arguments.get("name") or arguments.get("command"))]
    path = str(arguments.get("file_path") or arguments.get("path") or arguments.get("command"))
    return re.findall(r"skills/([\w.-]+)/", path)


def without(value, ignored, defaults):
    """Return arguments without those that do not count."""
    if not isinstance(value, dict):
        return value
    return {
        key: item
        for key, item in value.items()
        if not any(matches(key, name) for name in ignored)
        and not (key in defaults and defaults[key] == item)
    }


def is_part(expected, actual):
    """Whether arguments have all that is expected."""
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(expected)
            and all(map(is_part, expected, actual))
        )
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            key in actual and is_part(item, actual[key]) for key, item in expected.items()
        )
    return expected == actual and isinstance(expected, bool) == isinstance(actual, bool)


def is_used(names, value, negated):
    """Whether names are among those that were used, as often as they must be."""
    if not isinstance(value, dict):
        found = [any(fits(name, each) for name in names) for each in listed(value)]
        return any(found) if negated else all(found)
    count = sum(fits(name, value) for name in names)
    is_skill = settings["kind"] == "skill-used"
    if is_skill and negated:
        return count > 0
    least = value.get("min", 0 if "max" in value and is_skill else 1)
    return least <= count <= value.get("max", count)


def fits(name, matcher):
    """Whether a name is one that must be used; the name of a skill is not a pattern."""
    if settings["kind"] == "skill-used" and not (
        isinstance(matcher, dict) and "pattern" in matcher
    ):
        return name == (matcher["name"] if isinstance(matcher, dict) else matcher)
    return matches(name, matcher)


def is_sequence(names, value):
    """Whether names come in an order."""
    steps = value.get("steps") if isinstance(value, dict) else value
    if isinstance(value, dict) and value.get("mode") == "exact":
        return len(names) == len(steps) and all(map(matches, names, steps))
    left = iter(names)
    return all(any(matches(name, step) for name in left) for step in steps)


def has_arguments(calls, value):
    """Whether a call has arguments."""
    ignored, defaults = listed(value.get("ignore", [])), value.get("defaults") or {}
    expected = without(value.get("args", value.get("arguments")), ignored, {})
    for call in calls:
        actual = without(call.get("input"), ignored, defaults)
        same = actual == expected if value.get("mode") == "exact" else is_part(expected, actual)
        if same and "input" in call and matches(call["tool"], value):
            return True
    return False


def listed(value):
    """Return a list as it is, and any other value as the only item of one."""
    return value if isinstance(value, list) else [value]


given = json.load(sys.stdin)
if not given["has_trace"]:
    sys.exit("the target does not report tool calls")
settings = given["config"]
value, negated = settings["value"], settings.get("negated", False)
every = [call for message in given["output_messages"] for call in message.get("tool_calls") or []]
calls = [call for call in every if not is_command(call)]
names = [call["tool"] for call in calls]
if settings["kind"] == "skill-used":
    names = [skill for call in every for skill in skills_of(call)]
if settings["kind"] in {"tool-used", "skill-used"}:
    holds = is_used(names, value, negated)
elif settings["kind"] == "tool-sequence":
    holds = is_sequence(names, value)
elif settings["kind"] == "tool-args-match":
    holds = has_arguments(calls, value)
else:
    count = sum(matches(name, value) for name in names)
    holds = value.get("min", 0) <= count <= value.get("max", count)
print(
    json.dumps(
        {"score": int(holds != negated), "reasoning": f"called: {', '.join(names) or 'nothing'}"}
    )
)
