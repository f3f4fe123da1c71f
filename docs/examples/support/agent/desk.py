"""A support desk without a model: it looks orders up, refunds small amounts and hands the rest to people."""

import json
import re
import sys

ORDERS = {
    "17": {"state": "shipped", "total": 25.0},
    "18": {"state": "lost", "total": 30.0},
    "19": {"state": "lost", "total": 900.0},
}
LIMIT = 100.0

question = open(sys.argv[1], encoding="utf-8").read()
calls = []


def call(tool, **arguments):
    """Record a tool call and return its result."""
    output = ORDERS.get(arguments["order"], {}) if tool == "find_order" else {"done": True}
    calls.append({"tool": tool, "input": arguments, "output": output})
    return output


number = re.search(r"\b\d+\b", question)
if number is None:
    answer = "Which order is it? Please send its number."
else:
    order = call("find_order", order=number[0])
    if not order:
        answer = f"I cannot find order {number[0]}. Please check the number."
    elif order["state"] != "lost":
        answer = f"Order {number[0]} is on its way."
    elif order["total"] <= LIMIT:
        call("refund", order=number[0], amount=order["total"])
        answer = f"Order {number[0]} is lost, sorry. I have refunded {order['total']:.2f}."
    else:
        call("escalate", order=number[0], reason="above the limit")
        answer = f"Order {number[0]} is lost, sorry. A colleague will write to you today."
messages = [{"role": "assistant", "content": "", "tool_calls": calls}] if calls else []
print(json.dumps({"output_messages": [*messages, {"role": "assistant", "content": answer}]}))
