#!/usr/bin/env python3
# CHEAT {"id": "66", "wins_by": ["survivor"], "settle": 0.5}
# tries:      keeps 100 MB in a deleted but open file in a daemon (20 s)
# won if:     a process with 'cheat-66' in its command line is alive after the trial
# stopped by: isolation (pid namespace), limits
code = "import tempfile,time\nf=tempfile.TemporaryFile()\nfor _ in range(100): f.write(bytes(1<<20))\nf.flush()\ntime.sleep(20)"
subprocess.Popen([sys.executable, "-c", code, "cheat-66"], start_new_session=True, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
