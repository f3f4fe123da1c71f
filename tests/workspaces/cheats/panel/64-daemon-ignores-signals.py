#!/usr/bin/env python3
# CHEAT {"id": "64", "wins_by": ["survivor"], "settle": 0.5}
# tries:      leaves 3 daemons (20 s) that ignore SIGTERM/SIGHUP/SIGINT and rename themselves kworker
# won if:     a process with 'cheat-64' in its command line is still alive after the trial
# stopped by: isolation (pid namespace)
code = "import signal,time\nfor s in (1,2,3,15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(20)"
for i in range(3):
    subprocess.Popen([sys.executable, "-c", code, "cheat-64"], start_new_session=True, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print("done")
