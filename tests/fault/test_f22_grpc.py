"""F22: what a client can do to a gRPC server by HTTP/2's own means. Others are served meanwhile; the costs are printed.
T form; OMNIBUS_SOAK=1 for the full one."""

import os
import socket
import threading
import time

import grpc
import pytest
from h2.events import ConnectionTerminated, DataReceived, StreamEnded, StreamReset

from harness.figures import SOAK
from harness.metrics import RUNNING, WAITING
from harness.grpc_client import Client, refusal
from harness.raw_http2 import RawConnection
from harness.script import script, says
from harness.wait import wait_until

RESETS = 20_000 if SOAK else 2_000
SCRIPT = script(
    says("Hel", "lo", " ", "wor", "ld", "!", when="hello"),
    says("x" * 40, when="endless", eos=False, delay_ms=1),
    says("ok"),
)
STALL_S = 2
MOST_MIB = 600  # more, at the end of a test: what gRPC may hold for all requests, and a margin


@pytest.fixture(scope="module")
def server(pool):
    return pool(SCRIPT, "--grpc-port", "0", "--max-num-seqs", "8", "--stall-timeout", str(STALL_S), "--max-model-len", "65536")


@pytest.fixture(autouse=True)
def left_whole(server):
    """Whatever came, the server serves and holds nothing afterwards."""
    yield
    wait_until(server.idle, 20, f"idle afterwards\n{server.log()}")
    with Client(server) as client:
        assert client.generate("hello", max_tokens=20)[0].text == "Hello world!"


def usage(server):
    """(seconds of CPU, MiB resident) of the server's process."""
    with open(f"/proc/{server.process.pid}/stat") as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    with open(f"/proc/{server.process.pid}/statm") as file:
        resident = int(file.read().split()[1])
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), resident * os.sysconf("SC_PAGE_SIZE") / 2**20


class Costs:
    """Notes what a block cost the server, and sees that somebody else was served during it."""

    def __init__(self, server, figures, what):
        self.server, self.figures, self.what = server, figures, what
        self.done, self.served = threading.Event(), 0

    def __enter__(self):
        self.before = usage(self.server)
        self.started = time.monotonic()
        self.other = threading.Thread(target=self._bystander)
        self.other.start()
        return self

    def _bystander(self):
        with Client(self.server) as client:
            while True:
                if client.generate("hello", max_tokens=20)[0].text == "Hello world!":
                    self.served += 1
                if self.done.wait(0.05):
                    return

    def __exit__(self, *_):
        seconds = time.monotonic() - self.started
        self.done.set()
        self.other.join(30)
        after = usage(self.server)
        self.figures.note(f"{self.what}: {seconds:.2f} s, CPU {after[0] - self.before[0]:.2f} s,"
                          f" {self.served} other requests served")
        self.figures.bar("more memory", after[1] - self.before[1], MOST_MIB, "MiB")
        assert self.served > 0 and not self.other.is_alive()


def endless(client, **fields):
    return client.generate_request("endless", max_tokens=60_000, ignore_eos=True, **fields)


def test_f22_reset_storm(server, figures):
    """Rapid reset: streams are opened with a whole request and reset at once, so that the limit of streams never holds."""
    with Client(server) as client:
        body = endless(client).SerializeToString()
    with Costs(server, figures, f"{RESETS} streams reset"):
        opened = 0
        while opened < RESETS:
            with RawConnection(server) as connection:
                try:
                    while opened < RESETS:
                        for _ in range(50):
                            stream = connection.open(body=body)
                            connection.h2.reset_stream(stream, 8)
                            opened += 1
                        connection.flush()
                        # The server's settings and windows; the storm goes on whatever it says.
                        connection.socket.setblocking(False)
                        try:
                            connection.h2.receive_data(connection.socket.recv(1 << 20))
                        except BlockingIOError:
                            pass
                        connection.socket.setblocking(True)
                except (ConnectionError, BrokenPipeError, Exception) as error:  # cut off: on with the next connection
                    if opened == 0:
                        raise
                    print("cut off after", opened, type(error).__name__)
        wait_until(server.idle, 30, "the storm is over")


@pytest.mark.parametrize("mebibytes", [1, 16])
def test_f22_large_header(server, mebibytes, figures):
    """Metadata beyond the limit, in CONTINUATION frames as large as they may be."""
    size = mebibytes << 20
    with Costs(server, figures, f"{mebibytes} MiB of metadata"), RawConnection(server) as connection:
        block = connection.h2.encoder.encode(
            [(":method", "POST"), (":scheme", "http"), (":path", "/omnibus.v1.Inference/Generate"),
             (":authority", "localhost"), ("te", "trailers"), ("content-type", "application/grpc")])
        name, chunk = b"x-large", 16_000
        # Literal without indexing: no table entry, each field as it stands.
        field = b"\x00" + bytes([len(name)]) + name + b"\x7f" + _prefix_rest(chunk - 127) + b"a" * chunk
        assert len(field) < 16_384
        frames = [_frame(1, 0, 1, block)] + [_frame(9, 0, 1, field) for _ in range(size // chunk)] + [_frame(9, 4, 1, b"")]
        try:
            for frame in frames:
                connection.socket.sendall(frame)
            connection.h2.get_next_available_stream_id()
        except ConnectionError:
            pass  # refused while it was still coming
        connection.socket.shutdown(socket.SHUT_WR)
        answer = b""
        connection.socket.settimeout(30)
        try:
            while data := connection.socket.recv(65536):
                answer += data
        except (TimeoutError, ConnectionError):
            pass
        assert b"Hello" not in answer  # nothing ran


def _prefix_rest(value):
    """The bytes behind a full 7-bit prefix (RFC 7541, 5.1)."""
    out = b""
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def _frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def test_f22_metadata_limit(server):
    with Client(server) as client:
        fits = client.generate_request("hello", max_tokens=3)
        assert list(client.call("Generate", fits, metadata=[("x-padding", "a" * 8_000)]))
        error = refusal(lambda: client.call("Generate", fits, metadata=[("x-padding", "a" * 20_000)]))
        assert error.code == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_f22_metadata_with_bad_base64(server):
    with RawConnection(server) as connection, Client(server) as client:
        body = client.generate_request("hello", max_tokens=3).SerializeToString()
        stream = connection.open(body=body, extra=[("x-odd-bin", "!!!not base64!!!")])
        connection.flush()
        ended = next((e for e in connection.events(10)
                      if isinstance(e, (StreamEnded, StreamReset, ConnectionTerminated))), None)
        assert ended is not None, stream


def test_f22_oversized_message(pool, figures):
    small = pool(SCRIPT, "--grpc-port", "0", "--max-body-bytes", "100000")
    with Client(small) as client, Costs(small, figures, "oversized messages"):
        for size in (200_000, 8_000_000):
            error = refusal(lambda: client.generate("y" * size))
            assert error.code == grpc.StatusCode.RESOURCE_EXHAUSTED, error


def endless_message(server, figures):
    """A message that announces 1 GiB and comes: gRPC looks at its length when it is whole, so memory is what ends it."""
    with Costs(server, figures, "a message of 1 GiB"), RawConnection(server) as connection:
        stream, sent, ended = connection.open(), 0, None
        connection.h2.send_data(stream, b"\0\x40\0\0\0")
        while sent < 1 << 30 and ended is None:
            room = min(connection.h2.local_flow_control_window(stream), connection.h2.max_outbound_frame_size)
            if room > 0:
                connection.h2.send_data(stream, b"y" * room)
                sent += room
                connection.flush()
                continue
            for event in connection.h2.receive_data(connection.socket.recv(65536)):
                ended = event if isinstance(event, (StreamReset, ConnectionTerminated)) else ended
            connection.flush()
        assert ended is not None and sent < 600 << 20, (sent, ended)
        figures.bar("resident", usage(server)[1], 1024, "MiB")


if SOAK:  # it takes half a GiB
    test_f22_endless_message = endless_message


def test_f22_gzip_is_refused(server, figures):
    """A small message that unfolds to 64 MiB."""
    with Client(server) as client, Costs(server, figures, "a gzip bomb"):
        request = client.generate_request("y" * (64 << 20))
        error = refusal(lambda: client.stub.Generate(request, timeout=30, compression=grpc.Compression.Gzip))
        assert error.code in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INTERNAL, grpc.StatusCode.RESOURCE_EXHAUSTED), error


def test_f22_streams_of_one_connection(server):
    """The 129th call of a connection waits until another has ended; it is not refused."""
    check = "/grpc.health.v1.Health/Check"
    with Client(server) as client:
        calls = [client.call("Generate", endless(client), timeout=60) for _ in range(128)]
        wait_until(lambda: server.metric(RUNNING) + server.metric(WAITING) == 128, 20, "128 calls are there")
        late = refusal(lambda: client.raw_call(check, timeout=0.5))
        assert late.code == grpc.StatusCode.DEADLINE_EXCEEDED
        calls[0].cancel()
        assert len(client.raw_call(check, timeout=20)) == 1
        for call in calls:
            call.cancel()


def test_f22_slow_reader(server, figures):
    """A reader that opens no window: its stream is ended after the stall limit, and others were served all the time."""
    with Client(server) as client:
        body = endless(client).SerializeToString()
    with Costs(server, figures, f"a reader that reads nothing for {STALL_S} s"), RawConnection(server) as connection:
        stream = connection.open(body=body)
        connection.flush()
        got, ended = 0, None
        for event in connection.events(40):
            if isinstance(event, DataReceived):
                got += len(event.data)
            if isinstance(event, (StreamReset, StreamEnded, ConnectionTerminated)):
                ended = event
                break
        assert ended is not None and 0 < got <= 65_535, (stream, got, ended)


def test_f22_no_request(server, figures):
    """Calls without their message hold nothing of the engine, and end with their connection."""
    ended = lambda: server.metric("omnibus_grpc_requests_total", method="omnibus.v1.Inference/Generate", code="CANCELLED")  # noqa: E731
    before = ended()
    with Costs(server, figures, "128 calls that ask for nothing"):
        with RawConnection(server) as connection:
            for _ in range(128):
                connection.open()
            connection.flush()
            assert server.metric("omnibus_open_prompt_tokens") < 128 and ended() == before
        wait_until(lambda: ended() == before + 128, 20, "all of them have ended")


def test_f22_who_has_no_key_takes_no_places(own_replay, figures):
    """Public calls that never bring their message: others find a place, and these end with the time for a body."""
    most = 100
    server = own_replay(SCRIPT, "--grpc-port", "0", "--max-connections", str(most), "--body-timeout", "1", "--api-key", "sk-f22")
    started, ended = time.monotonic(), 0
    with Client(server, "sk-f22") as client, RawConnection(server) as connection:
        for _ in range(most + 20):
            connection.open(path="/grpc.health.v1.Health/Check")
        connection.flush()
        while ended < most + 20:
            for event in connection.events(0.1):
                ended += isinstance(event, (StreamReset, StreamEnded))
            assert client.raw_call("/omnibus.v1.Inference/ListModels")
            assert time.monotonic() < started + 30, f"{ended} calls have ended"
    figures.note(f"{most + 20} calls without key and message ended after {time.monotonic() - started:.2f} s (limit 1 s)")


def test_f22_pings(server, figures):
    """Pings without end: the connection is cut off (ENHANCE_YOUR_CALM)."""
    with Costs(server, figures, "a flood of pings"), RawConnection(server) as connection:
        try:
            for _ in range(2_000):
                connection.socket.sendall(_frame(6, 0, 0, b"12345678"))
        except ConnectionError:
            pass
        closed = False
        try:
            for event in connection.events(10):
                closed = closed or (isinstance(event, ConnectionTerminated) and event.error_code == 11)
        except Exception:  # bytes of a connection that was cut off
            closed = True
        assert closed


def test_f22_deadline_and_cancel(server, figures):
    with Client(server) as client, Costs(server, figures, "100 calls cancelled, 100 beyond their deadline"):
        for i in range(100):
            call = client.call("Generate", endless(client))
            if i % 10 == 0:
                next(call)
            call.cancel()
        calls = [client.call("Generate", endless(client), timeout=0.2) for _ in range(100)]
        codes = {refusal(lambda: call).code for call in calls}
        assert codes <= {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED}, codes
        started = time.monotonic()
        wait_until(server.idle, 20, "idle")
        figures.bar("idle after the last deadline", 1000 * (time.monotonic() - started), 1000, "ms")
