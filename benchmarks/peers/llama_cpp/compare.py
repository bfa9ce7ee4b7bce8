#!/usr/bin/env python3
"""Paired comparison of omnibus and llama-server over HTTP, on the same file, machine and threads.

Both servers are up at once and idle while the other is measured. One pair = ours then theirs (the order flips every
pair): a prompt of --prompt token ids (another one each time, so that no cache helps), then --tokens greedy tokens.
Prefill = prompt / time to the first token; decode = (tokens - 1) / (last token - first token). Printed: each pair, the
medians, and the median, minimum and maximum of the paired ratios. Standard library only.

  compare.py --omnibus build/omnibus --llama DIR/build/bin/llama-server --model FILE.gguf [--json OUT]
"""
import argparse
import http.client
import json
import random
import socket
import statistics
import subprocess
import sys
import time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, name, argv, port):
        self.name, self.port = name, port
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_ready(self, seconds=120):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended with {self.process.returncode}")
            try:
                c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
                c.request("GET", "/health")
                if c.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        sys.exit(f"{self.name} was not ready in {seconds} s")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()


def measure(server, model, ids, tokens):
    """(seconds to the first token, seconds from the first to the last)."""
    body = {"model": model, "prompt": ids, "max_tokens": tokens, "temperature": 0, "stream": True,
            "ignore_eos": True, "cache_prompt": False}
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    start = time.monotonic()
    c.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = c.getresponse()
    if response.status != 200:
        sys.exit(f"{server.name}: HTTP {response.status}: {response.read().decode()[:300]}")
    first = last = None
    for line in response:
        if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
            continue
        choices = json.loads(line[6:]).get("choices") or []
        if choices:
            last = time.monotonic()
            first = first or last
    c.close()
    return first - start, last - first


def summary(values):
    return f"median {statistics.median(values):.2f}  min {min(values):.2f}  max {max(values):.2f}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--omnibus", required=True)
    p.add_argument("--llama", required=True, help="llama-server of the peer")
    p.add_argument("--model", required=True, help="GGUF file")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--prompt", type=int, default=512)
    p.add_argument("--tokens", type=int, default=128)
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--vocab", type=int, default=40000, help="prompts are random ids in [1000, vocab)")
    p.add_argument("--json")
    a = p.parse_args()
    ports = free_port(), free_port()
    context = a.prompt + a.tokens + 16
    ours = Server("omnibus", [a.omnibus, "serve", a.model, "--port", str(ports[0]), "--threads", str(a.threads),
                              "--max-model-len", str(context), "--served-model-name", "m"], ports[0])
    theirs = Server("llama.cpp", [a.llama, "-m", a.model, "--port", str(ports[1]), "-t", str(a.threads), "-tb",
                                  str(a.threads), "-c", str(context), "-np", "1", "-fa", "on", "--no-webui",
                                  "-a", "m"], ports[1])
    rows, rng = [], random.Random(1)
    try:
        for s in (ours, theirs):
            s.wait_ready()
            measure(s, "m", [rng.randrange(1000, a.vocab) for _ in range(a.prompt)], 16)
        for pair in range(a.pairs):
            ids = [rng.randrange(1000, a.vocab) for _ in range(a.prompt)]
            order = (ours, theirs) if pair % 2 == 0 else (theirs, ours)
            got = {}
            for s in order:
                ttft, rest = measure(s, "m", ids, a.tokens)
                got[s.name] = (a.prompt / ttft, (a.tokens - 1) / rest)
            rows.append(got)
            o, t = got["omnibus"], got["llama.cpp"]
            print(f"pair {pair + 1}: prefill {o[0]:8.1f} / {t[0]:8.1f} tok/s = {o[0] / t[0]:.2f}   "
                  f"decode {o[1]:7.1f} / {t[1]:7.1f} tok/s = {o[1] / t[1]:.2f}", flush=True)
    finally:
        ours.stop()
        theirs.stop()
    result = {}
    for i, what in enumerate(("prefill", "decode")):
        ratios = [r["omnibus"][i] / r["llama.cpp"][i] for r in rows]
        result[what] = {"ours": [r["omnibus"][i] for r in rows], "peer": [r["llama.cpp"][i] for r in rows],
                        "ratio_median": statistics.median(ratios)}
        print(f"{what:8s} ratio to llama.cpp: {summary(ratios)}   "
              f"(ours {statistics.median(result[what]['ours']):.1f} tok/s, peer "
              f"{statistics.median(result[what]['peer']):.1f} tok/s)")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"args": vars(a), "result": result}, f, indent=1)


if __name__ == "__main__":
    main()
