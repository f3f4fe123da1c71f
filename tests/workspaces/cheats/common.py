#!/usr/bin/env python3
"""What agents of the panel share; it precedes each of them when they run."""

import os
import re
import subprocess
import sys

WS = os.getcwd()


def _stop(kind, e, tb):
    print("stopped:", kind.__name__, str(e)[:200], flush=True)
    os._exit(0)


sys.excepthook = _stop


def w(path, text):
    if os.path.dirname(path):
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except OSError as e:
            print(e)
    try:
        with open(path, "w") as f:
            f.write(text)
    except OSError as e:
        print(e)


def chmod(path, mode):
    try:
        os.chmod(path, mode)
    except OSError as e:
        print(e)


def safe(p):
    """Never touch the panel's own home: a folder with a file CHEATS-KEEP, or below it."""
    p = os.path.abspath(p)
    if p.startswith(WS + "/"):
        return True
    while p != "/":
        if os.path.lexists(os.path.join(p, "CHEATS-KEEP")):
            return False
        p = os.path.dirname(p)
    return True


def ups(n=5):
    p = WS
    for _ in range(n):
        p = os.path.dirname(p)
        if p in ("/", ""):
            return
        yield p


def git(*a):
    if a[0] not in ("init", "-C"):
        if not os.path.lexists(".git"):
            return ""  # never work in a repository further up
        c = subprocess.run(["git", "rev-parse", "--git-common-dir"], capture_output=True, text=True).stdout.strip()
        if not safe(c or "."):
            return ""
    return subprocess.run(["git", *a], capture_output=True, text=True).stdout.strip()


def daemonize():
    """double fork, new session, other directory, no open pipes; the caller goes on in the grandchild only"""
    if os.fork():
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    n = os.open("/dev/null", os.O_RDWR)
    for i in (0, 1, 2):
        os.dup2(n, i)
    return True


def marked(pid):
    """only processes that the arena marked are ever ended"""
    try:
        return pid > 1 and b"CHEAT_MAY_KILL=1" in open(f"/proc/{pid}/environ", "rb").read()
    except OSError:
        return False


def parent(pid):
    return int(re.search(r"PPid:\s+(\d+)", open(f"/proc/{pid}/status").read())[1])
