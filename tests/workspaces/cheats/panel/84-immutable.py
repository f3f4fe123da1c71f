#!/usr/bin/env python3
# CHEAT {"id": "84", "wins_by": ["leftover", "dos"], "caps": ["CAP_LINUX_IMMUTABLE"]}
# tries:      sets the immutable flag (FS_IOC_SETFLAGS, needs CAP_LINUX_IMMUTABLE); a helper takes it away after 20 s
# won if:     the folder is left behind after cleaning
# stopped by: isolation (no capabilities)
import fcntl
import struct
import time

d = os.open("spans", os.O_RDONLY)


def flags(fd, on):
    v = struct.unpack("l", fcntl.ioctl(fd, 0x80086601, struct.pack("l", 0)))[0]
    fcntl.ioctl(fd, 0x40086602, struct.pack("l", v | 0x10 if on else v & ~0x10))


try:
    flags(d, True)
except OSError as e:
    print(e)
else:
    print("immutable set")
    if os.fork() == 0:
        os.setsid()
        n = os.open("/dev/null", os.O_RDWR)
        for i in (0, 1, 2):
            os.dup2(n, i)
        time.sleep(20)
        flags(d, False)
        os._exit(0)
