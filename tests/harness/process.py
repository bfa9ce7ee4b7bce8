"""What a server's process uses, read from /proc."""

import os
from pathlib import Path


def rss(server):
    """Resident memory in bytes."""
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fds(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def threads(server):
    return len(os.listdir(f"/proc/{server.process.pid}/task"))


def cpu_seconds(server):
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Flat:
    """Memory, descriptors and threads from one moment on. "Flat" is at most 5 % more than then."""

    def __init__(self, server):
        self.server = server
        self.start = self._now()

    def _now(self):
        return {"rss": rss(self.server), "fds": fds(self.server), "threads": threads(self.server)}

    def growth(self):
        """Per kind: how much more there is than at the start, in percent."""
        now = self._now()
        return {kind: 100 * (now[kind] - start) / start for kind, start in self.start.items()}
