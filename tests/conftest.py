"""Fixtures of tests/e2e, tests/security and tests/fault."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.clients import start_real_server  # noqa: E402
from harness.script import HELLO  # noqa: E402
from harness.server import Server, replay_command  # noqa: E402


class Pool:
    """Servers by script and flags: equal ones are shared, each must end well. `keep` ends those that were not asked for lately."""

    def __init__(self, folder):
        self.folder = folder
        self.servers = {}  # the one asked for last is last

    def __call__(self, script, *flags):
        key = (script, flags)
        server = self.servers.pop(key, None) or self.start(script, *flags)
        self.servers[key] = server
        return server

    def keep(self, count):
        while len(self.servers) > count:
            _, flags = oldest = next(iter(self.servers))
            server = self.servers.pop(oldest)
            assert server.stop() == 0, f"{flags}\n{server.log()}"
            server.close()

    def start(self, script, *flags):
        """A server of the caller's own; the caller stops it."""
        path = self.folder / f"script{len(list(self.folder.iterdir()))}.jsonl"
        path.write_text(script, encoding="utf-8")
        return Server(replay_command(path, *flags))


@pytest.fixture(scope="session")
def pool(tmp_path_factory):
    pool = Pool(tmp_path_factory.mktemp("scripts"))
    yield pool
    pool.keep(0)


@pytest.fixture(scope="module", autouse=True)
def few_servers(pool):
    """Between files, where nobody holds one: with sanitizers a server takes a quarter of a GiB."""
    yield
    pool.keep(8)


@pytest.fixture
def replay(pool):
    """replay(script, *flags): a shared server that follows the script."""
    return pool


@pytest.fixture
def own_replay(pool):
    """own_replay(script, *flags): a server that only this test uses and may end."""
    started = []

    def start(script, *flags):
        started.append(pool.start(script, *flags))
        return started[-1]

    yield start
    for server in started:
        server.stop()
        server.close()


@pytest.fixture
def hello(pool):
    """Answers "Hello world!" to hello, x without end to endless, ok to the rest."""
    return pool(HELLO)


@pytest.fixture(scope="session")
def default_model():
    path = os.environ.get("OMNIBUS_TEST_MODEL")
    if not path:
        pytest.skip("OMNIBUS_TEST_MODEL is not set (scripts/test.sh sets it)")
    return path


@pytest.fixture(scope="session")
def real(default_model):
    """The program with the default model behind a key (harness/clients.py), for the suites of clients."""
    server = start_real_server(default_model)
    yield server
    assert server.stop() == 0, server.log()
    server.close()
