"""Whether anybody opens, makes or removes files in a folder, by Linux' inotify."""

import ctypes
import os
import struct

_OPEN, _CREATE, _DELETE, _MODIFY, _MOVED, _ATTRIB = 0x20, 0x100, 0x200, 0x2, 0xC0, 0x4


class Watch:
    """with Watch(folder) as watch: ...; watch.events() names what happened to the files in it."""

    def __init__(self, *folders):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK)
        assert self.fd >= 0, os.strerror(ctypes.get_errno())
        for folder in folders:
            added = libc.inotify_add_watch(
                self.fd, str(folder).encode(), _OPEN | _CREATE | _DELETE | _MODIFY | _MOVED | _ATTRIB
            )
            assert added >= 0, os.strerror(ctypes.get_errno())

    def events(self):
        names, data = [], b""
        try:
            while more := os.read(self.fd, 65536):
                data += more
        except BlockingIOError:
            pass
        while data:
            _, mask, _, length = struct.unpack_from("iIII", data)
            names.append((data[16 : 16 + length].rstrip(b"\0").decode(), hex(mask)))
            data = data[16 + length :]
        return names

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)
