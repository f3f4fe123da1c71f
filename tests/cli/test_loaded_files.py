"""What an agent can change of what the publishing step loads, and what it may change."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agentv_ci.cli.loaded_files import loaded_files
from tests.support import REPOSITORY, write

PYTHON = {
    "venv/pyvenv.cfg": "",
    "py/bin/python3.11": "program",
    "py/bin/pip": "",
    "py/lib/libpython3.11.so.1.0": "",
    "py/lib/python3.11/functools.py": "",
    "py/lib/python3.11/site-packages/a.py": "",
    "searched/other.txt": "",
}


@pytest.fixture
def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an interpreter that its user may change, in `py`, and an environment of it."""
    write(tmp_path, PYTHON)
    (tmp_path / "py/bin/python3.11").chmod(0o555)
    (tmp_path / "py/bin/python3").symlink_to("python3.11")
    (tmp_path / "venv/bin").mkdir()
    (tmp_path / "venv/bin/python").symlink_to(tmp_path / "py/bin/python3")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv/bin/python"))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "py"))
    monkeypatch.setattr(sys, "base_exec_prefix", str(tmp_path / "py"))
    library = tmp_path / "py/lib"
    monkeypatch.setattr(sys, "path", [str(library / "python311.zip"), str(library / "python3.11")])
    return tmp_path


@pytest.mark.parametrize(
    ("script", "is_noticed"),
    [
        ("touch py/lib/python311.zip", True),
        ("mkdir py/lib/python311.zip; touch py/lib/python311.zip/functools.py", True),
        ("echo x > new; mv new py/lib/libpython3.11.so.1.0", True),
        ("touch py/lib/libssl.so.3", True),
        ("mkdir -p py/lib/glibc-hwcaps/x86-64-v3; touch py/lib/glibc-hwcaps/x86-64-v3/libm.so.6", True),
        ("echo evil > new; chmod 555 new; mv -f new py/bin/python3.11", True),
        ("chmod u+w py/bin/python3.11; echo evil > py/bin/python3.11; chmod 555 py/bin/python3.11", True),
        ("echo evil > new; ln -sf ../../new py/bin/python3", True),
        ("touch py/bin/pybuilddir.txt", True),
        ("touch py/bin/python3.11._pth", True),
        ("touch py/pyvenv.cfg", True),
        ("mkdir py/lib/python3.11/__pycache__; touch py/lib/python3.11/__pycache__/functools.cpython-311.pyc", True),
        ("touch searched/libc.so.6", True),
        ("mv py other; cp -a other py", True),
        ("echo >> py/lib/python3.11/site-packages/a.py", False),
        ("touch py/bin/pytest py/bin/python-tool; mkdir py/lib/node_modules", False),
        ("touch searched/notes.txt; cat py/lib/python3.11/functools.py", False),
    ],
)
def test_changes_of_what_a_later_start_loads(script: str, is_noticed: bool, interpreter: Path) -> None:
    watched = loaded_files({"LD_LIBRARY_PATH": str(interpreter / "searched")})
    before = watched.states()
    subprocess.run(["sh", "-e", "-c", script], cwd=interpreter, check=True)
    assert (watched.states() != before) is is_noticed


OWNERS = """
import os, sys
from pathlib import Path
folder = Path(sys.argv[1])
sys.path.insert(0, sys.argv[2])
from agentv_ci.cli.loaded_files import _may_change  # before this Python cannot be read
(folder / "of-another").touch()
(folder / "own").mkdir()
(folder / "own" / "of-another").touch()
folder.chmod(0o1777)
if os.getuid() == 0:
    os.chown(folder / "own", 65534, 65534)
    os.setuid(65534)
(folder / "own" / "read-only").touch(0o444)
paths = ["own/read-only", "own/of-another", "own/missing/x", "missing", "of-another"]
print([_may_change(folder / path) for path in paths], [_may_change(Path(path)) for path in ("/bin/sh", "/usr/lib/x")])
"""


def test_a_mode_does_not_protect_from_the_owner() -> None:
    """As a user whom modes stop; another's file in a sticky folder exists only where the tests run as root."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", OWNERS, folder, str(REPOSITORY)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    own, others = done.stdout.strip().split("] [")
    assert own.startswith("[True, True, True, True"), done.stderr
    assert others == "False, False]"
