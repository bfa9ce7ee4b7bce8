"""What a process takes, and limits on it."""

import os
import resource


def rss_bytes(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def virtual_bytes(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def allow_descriptors(count):
    """Lets this process have that many; fails where the system forbids it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(hard, count) if hard != resource.RLIM_INFINITY else hard))


def sanitized():
    """Whether the programs are built with a sanitizer, whose own memory says nothing about theirs."""
    return bool(os.environ.get("OMNIBUS_TEST_SANITIZER"))
