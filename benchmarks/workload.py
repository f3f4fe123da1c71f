"""The documents that are checked: the same cases in each tool's own words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

CASES_PER_FILE = 10
PRODUCTS = (
    "copper kettle",
    "desk lamp",
    "garden chair",
    "bread knife",
    "wall clock",
    "folding table",
    "wool blanket",
)
TARGETS = """\
$schema: agentv-targets-v2.2
targets:
  - {name: default, provider: mock, response: You can return it within 30 days.}
  - {name: judge, provider: mock, response: '{"score": 1}'}
"""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How some tools want the cases written."""

    suffix: str
    head: str
    case: str
    mistake: tuple[str, str]
    """What to replace with what, to make a file invalid."""
    words: tuple[tuple[str, str], ...] = ()
    """What to replace with what, to make it this dialect."""


OURS = Dialect(
    suffix=".yaml",
    head="""\
$schema: agentv-eval-v2
description: How the assistant of a shop answers questions about returns
execution:
  target: default
evalcases:
""",
    case=r"""  - id: return-{order}
    expected_outcome: Names the {days} days for the {product} and offers a label
    input_messages:
      - role: system
        content: |
          You answer customers of a shop that sells household goods. Be short and polite, name the
          rule that you apply, and never promise anything that the policies do not say.
      - role: user
        content:
          - {{type: file, value: policies/returns.md}}
          - type: text
            value: |
              Hello, I bought a {product} from you (order {order}) and it arrived on Monday.
              It works, but its color looks different on your site: is that a mistake?
              Can I still send it back, and who pays for the parcel?
    expected_messages:
      - role: assistant
        content: |
          I am sorry that the {product} is not what you expected. You can return order {order}
          within {days} days of its arrival; we pay for the parcel. Shall I send you the label?
    evaluators:
      - name: names-the-order
        type: contains
        value: 'order {order}'
        required: true
      - {{name: names-the-days, type: regex, value: '\b{days}\s+days\b', weight: 2}}
      - {{name: is-polite, type: llm_judge, judge_target: judge}}
""",
    mistake=("role: assistant", "role: asistant"),
)
AGENTV = replace(
    OURS,
    suffix=".eval.yaml",
    words=(
        ("$schema: agentv-eval-v2\n", ""),
        ("evalcases:", "tests:"),
        ("expected_outcome:", "criteria:"),
        ("input_messages:", "input:"),
        ("expected_messages:", "expected_output:"),
        ("evaluators:", "assertions:"),
        ("llm_judge, judge_target:", "llm-grader, target:"),
    ),
)
PROMPTFOO = Dialect(
    suffix=".yaml",
    head="""\
description: How the assistant of a shop answers questions about returns
providers: [echo]
prompts:
  - '{{system}} {{policy}} {{question}}'
tests:
""",
    case=r"""  - description: return-{order}
    metadata:
      expected_outcome: Names the {days} days for the {product} and offers a label
    vars:
      system: |
        You answer customers of a shop that sells household goods. Be short and polite, name the
        rule that you apply, and never promise anything that the policies do not say.
      policy: file://policies/returns.md
      question: |
        Hello, I bought a {product} from you (order {order}) and it arrived on Monday.
        It works, but its color looks different on your site: is that a mistake?
        Can I still send it back, and who pays for the parcel?
      expected: |
        I am sorry that the {product} is not what you expected. You can return order {order}
        within {days} days of its arrival; we pay for the parcel. Shall I send you the label?
    assert:
      - metric: names-the-order
        type: contains
        value: 'order {order}'
        weight: 1
      - {{metric: names-the-days, type: regex, value: '\b{days}\s+days\b', weight: 2}}
      - {{metric: is-polite, type: llm-rubric, value: Is polite and offers a label}}
""",
    mistake=("weight: 2", "weight: heavy"),
)
DIALECTS = {"agentv-ci": OURS, "agentv": AGENTV, "promptfoo": PROMPTFOO}


def files_of(folder: Path) -> list[str]:
    """Return the names of the documents in a folder, in order."""
    return sorted(path.name for path in folder.glob("eval-*"))


def folder_of(
    root: Path, name: str, files: int, *, cases: int = CASES_PER_FILE, broken: bool = False
) -> Path:
    """Return a folder of files of a dialect, each of so many cases.

    It is written when it is first asked for.
    """
    folder = root / f"{name}-{files}-{cases}{'-broken' if broken else ''}"
    if folder.exists():
        return folder
    (folder / "policies").mkdir(parents=True)
    (folder / "policies" / "returns.md").write_text(
        "Everything but food can be returned.\n", "utf-8"
    )
    if name == "agentv-ci":
        (folder / "targets.yaml").write_text(TARGETS, "utf-8")
    dialect = DIALECTS[name]
    for number in range(files):
        text = document_of(dialect, number, cases)
        if broken:
            text = dialect.mistake[1].join(text.rsplit(dialect.mistake[0], 1))
        (folder / f"eval-{number:05}{dialect.suffix}").write_text(text, "utf-8")
    return folder


def document_of(dialect: Dialect, number: int, cases: int = CASES_PER_FILE) -> str:
    """Return one document."""
    first = number * cases
    text = dialect.head + "".join(_case(dialect, order) for order in range(first, first + cases))
    for ours, theirs in dialect.words:
        text = text.replace(ours, theirs)
    return text


def _case(dialect: Dialect, order: int) -> str:
    """Return a case; one of three attaches a file, one of two asks a judge."""
    days, product = 14 + order % 17, PRODUCTS[order % len(PRODUCTS)]
    lines = dialect.case.format(order=order, days=days, product=product).splitlines(keepends=True)
    left_out = [*(["returns.md"] if order % 3 else []), *(["is-polite"] if order % 2 else [])]
    return "".join(line for line in lines if not any(word in line for word in left_out))
