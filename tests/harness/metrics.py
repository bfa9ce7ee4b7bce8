"""A server's /metrics over one connection that stays open, and what the ledger of requests and blocks says."""

import http.client
import re
import ssl

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"
OPEN_TOKENS = "omnibus_open_prompt_tokens"
KV_USAGE = "vllm:kv_cache_usage_perc"


class Metrics:
    """One thread only."""

    def __init__(self, server):
        if server.url.startswith("https"):
            self.connection = http.client.HTTPSConnection(
                "127.0.0.1", server.port, timeout=30, context=ssl._create_unverified_context()  # noqa: S323
            )
        else:
            self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)

    def scrape(self):
        """{(name, labels as text): value} of all samples."""
        for attempt in (1, 2):  # a connection that idled too long is opened anew
            try:
                self.connection.request("GET", "/metrics")
                text = self.connection.getresponse().read().decode()
                break
            except (http.client.HTTPException, ConnectionError):
                self.connection.close()
                if attempt == 2:
                    raise
        found = (_SAMPLE.fullmatch(line) for line in text.splitlines())
        return {(m.group(1), m.group(2) or ""): float(m.group(3)) for m in found if m}

    def __call__(self, name, **labels):
        """Sum of the samples of `name` whose labels include `labels`."""
        return total(self.scrape(), name, **labels)

    def balanced(self):
        """Nothing runs, nothing waits, no block is in use."""
        samples = self.scrape()
        return all(total(samples, name) == 0 for name in (OPEN_TOKENS, RUNNING, WAITING, KV_USAGE))

    def close(self):
        self.connection.close()


def total(samples, name, **labels):
    return sum(
        value
        for (sample, words), value in samples.items()
        if sample == name and all(f'{k}="{v}"' in words for k, v in labels.items())
    )
