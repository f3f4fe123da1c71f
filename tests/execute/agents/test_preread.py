"""The prompt of agents: files to read first, the proof that they were read, the question."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from agentv_ci.contracts.exchange import InputFile, Request
from agentv_ci.execute.agents.workspace import file_link, guidelines_of, prompt_document, proof_request, take_proofs

QUESTION = Request("one", "with contents", "", (), timeout_s=1, cwd=Path("/"), task="  do it  ")
GUIDELINE = InputFile(Path("/repo/a.instructions.md"), is_guideline=True, sha256="")
ATTACHED = InputFile(Path("/repo/data.csv"), is_guideline=False, sha256="")


@pytest.fixture
def read(tmp_path: Path) -> tuple[InputFile, InputFile]:
    """Two guidelines on disk."""
    links = []
    for name in ("a.md", "b.md"):
        path = tmp_path / name
        path.write_text(name, encoding="utf-8")
        links.append(InputFile(path, is_guideline=True, sha256=""))
    return links[0], links[1]


def hash_of(link: InputFile) -> str:
    return hashlib.sha256(link.path.read_bytes()).hexdigest()


def token(name: str, number: int, digest: str) -> str:
    return f"INSTRUCTIONS_READ: `{name}` i={number} SHA256={digest}"


def test_question_without_files_has_no_files_to_read() -> None:
    assert prompt_document(QUESTION, []) == "[[ ## user_query ## ]]\n\ndo it"


def test_guidelines_and_attachments_are_listed_apart() -> None:
    text = prompt_document(QUESTION, [ATTACHED, GUIDELINE])
    assert text.startswith(
        "Read all guideline files:\n* [a.instructions.md](file:///repo/a.instructions.md).\n\n"
        "Read all attached files:\n* [data.csv](file:///repo/data.csv).\n\n"
    )
    assert "answer `ERROR: missing-file <filename>` and stop" in text
    assert text.endswith("[[ ## user_query ## ]]\n\ndo it")


def test_question_without_a_form_for_agents_is_the_prompt() -> None:
    judged = Request("one", "judge this", "", (), timeout_s=1, cwd=Path("/"))
    assert prompt_document(judged, []).endswith("judge this")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a b.md", "[a b.md](file:///r/a%20b.md)"),
        ("a#b?.md", "[a#b?.md](file:///r/a%23b%3F.md)"),
        ("a(1).md", "[a(1).md](file:///r/a%281%29.md)"),
        ("a[1].md", "[a\\[1\\].md](file:///r/a%5B1%5D.md)"),
        ("é.md", "[é.md](file:///r/%C3%A9.md)"),
    ],
)
def test_link_survives_odd_names(name: str, shown: str) -> None:
    assert file_link(InputFile(Path("/r", name), is_guideline=False, sha256="")) == shown


def test_no_proof_is_asked_for_without_guidelines() -> None:
    assert proof_request(guidelines_of([ATTACHED])) == ""


def test_proof_is_asked_for_each_guideline() -> None:
    text = proof_request([GUIDELINE, InputFile(Path("/repo/b.md"), is_guideline=True, sha256="")])
    assert text.startswith("[[ ## mandatory_pre_read ## ]]\n\nRead all instruction files: [a.instructions.md](file:")
    assert "INSTRUCTIONS_READ: `a.instructions.md` i=1 SHA256=<hex>\nINSTRUCTIONS_READ: `b.md` i=2 SHA256=<hex>" in text


def test_tokens_are_taken_off_the_answer_and_compared(read: tuple[InputFile, InputFile]) -> None:
    answer = "\n".join([token("a.md", 1, hash_of(read[0]).upper()), token("b.md", 2, "0" * 64), "", "The answer."])
    text, proofs = take_proofs(answer, guidelines_of(read))
    assert text == "The answer."
    assert [(proof["file"], proof["ok"]) for proof in proofs] == [("a.md", True), ("b.md", False)]
    assert proofs[1] == {
        "file": "b.md",
        "i": 2,
        "sha256_expected": hash_of(read[1]),
        "sha256_reported": "0" * 64,
        "ok": False,
    }


def test_answer_without_tokens_is_whole_and_proves_nothing(read: tuple[InputFile, InputFile]) -> None:
    text, proofs = take_proofs("\nThe answer.\n", guidelines_of(read))
    assert (text, [proof["sha256_reported"] for proof in proofs]) == ("The answer.", [None, None])


def test_tokens_further_down_belong_to_the_answer(read: tuple[InputFile, InputFile]) -> None:
    answer = f"The answer.\n{token('a.md', 1, hash_of(read[0]))}"
    text, proofs = take_proofs(answer, guidelines_of(read))
    assert (text, proofs[0]["sha256_reported"]) == (answer, None)
