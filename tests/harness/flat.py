"""Whether a server's memory, descriptors and threads stay flat: at most 5 % more than at some moment."""

from harness.process import descriptors, rss_bytes, threads


class Flat:
    def __init__(self, server):
        self.pid = server.process.pid
        self.start = self._now()

    def _now(self):
        return {"rss": rss_bytes(self.pid), "fds": descriptors(self.pid), "threads": threads(self.pid)}

    def growth(self):
        """Per kind: how much more there is than at the start, in percent."""
        now = self._now()
        return {kind: 100 * (now[kind] - start) / start for kind, start in self.start.items()}
