#!/usr/bin/env python3
"""Paired comparison of omnibus and llama-server under load, with `omnibus bench serve` as the client of both.

Same file, threads, slots and context per slot; each is idle while the other is measured. One pair = ours then theirs
(the order flips every pair), with the same prompts. No server gets a prompt twice: both keep the prompts that they have
seen, and a run with more tokens from such a cache than chance explains is an error. Two scenarios:

  streams               1, 8 and 32 requests at once: output tokens per second, median TTFT, p99 ITL, and the server's
                        processor time per output token, prompts included (waiting threads that spin count, too)
  prefill-interference  gaps between the tokens of running streams while a prompt of --long tokens is read, in pieces
                        (the servers' defaults) and whole

Printed: each pair, and the median, minimum and maximum of the paired ratios. Standard library only.

  compare.py --omnibus build/omnibus --llama DIR/build/bin/llama-server --model FILE.gguf [--json OUT] [--short]
"""

import argparse
import itertools
import json
import statistics
import time

from servers import finish_bench, llama, omnibus, run_bench, start_bench

LOAD = ("output_throughput", "median_ttft_ms", "p99_itl_ms", "cpu_ms_per_token")


# Each run has a seed of its own, which a pair's two runs share.
SEEDS = itertools.count(1)


def percentile(values, q):
    """Interpolated between neighbours."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * q / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def summary(values):
    return f"median {statistics.median(values):.2f}  min {min(values):.2f}  max {max(values):.2f}"


def one_run(a, server, streams, seed):
    before = server.cpu_seconds()
    result = run_bench(
        a, server, "--num-prompts", max(a.rounds * streams, a.fewest), "--max-concurrency", streams, "--seed", seed,
        "--random-input-len", a.input, "--random-output-len", a.output,
    )  # fmt: skip
    result["cpu_ms_per_token"] = (server.cpu_seconds() - before) * 1e3 / result["total_output_tokens"]
    result["cached_percent"] = 100 * result["total_cached_tokens"] / result["total_input_tokens"]
    return result


def streams_scenario(a):
    """{streams: {figure: {"ours": [...], "peer": [...], "ratios": [...]}}}"""
    context = a.input + a.output + 64
    slots = max(a.streams)
    servers = [omnibus(a, slots, context), llama(a, slots, context)]
    figures = (*LOAD, "cached_percent")
    table = {n: {figure: {"ours": [], "peer": []} for figure in figures} for n in a.streams}
    warm_up = ["--num-prompts", slots, "--random-input-len", a.input, "--random-output-len", 8, "--seed", next(SEEDS)]
    try:
        for server in servers:
            server.wait_ready()
            run_bench(a, server, *warm_up)
        for pair in range(a.pairs):
            for n in a.streams:
                got, seed = {}, next(SEEDS)
                for server in servers if pair % 2 == 0 else servers[::-1]:
                    got[server.name] = one_run(a, server, n, seed)
                for figure in figures:
                    table[n][figure]["ours"].append(got["omnibus"][figure])
                    table[n][figure]["peer"].append(got["llama.cpp"][figure])
                o, t = got["omnibus"], got["llama.cpp"]
                print(f"pair {pair + 1}, {n:2} streams: {o[LOAD[0]]:8.1f} / {t[LOAD[0]]:8.1f} tok/s = {o[LOAD[0]] / t[LOAD[0]]:.2f}"
                      f"   TTFT {o[LOAD[1]]:8.1f} / {t[LOAD[1]]:8.1f} ms   p99 ITL {o[LOAD[2]]:7.1f} / {t[LOAD[2]]:7.1f} ms"
                      f"   CPU {o[LOAD[3]]:.2f} / {t[LOAD[3]]:.2f} ms a token"
                      f"   cached {o['cached_percent']:.2f} / {t['cached_percent']:.2f} %", flush=True)  # fmt: skip
    finally:
        for server in servers:
            server.stop()
    for n in a.streams:
        cached = [max(table[n]["cached_percent"][who]) for who in ("ours", "peer")]
        print(f"{n:2} streams  prompt tokens from a cache, at most: ours {cached[0]:.2f} %  peer {cached[1]:.2f} %")
        for figure in LOAD:
            row = table[n][figure]
            row["ratios"] = [ours / peer for ours, peer in zip(row["ours"], row["peer"])]
            print(f"{n:2} streams  {figure:18} ours {statistics.median(row['ours']):9.1f}  peer "
                  f"{statistics.median(row['peer']):9.1f}  ratio {summary(row['ratios'])}")  # fmt: skip
    one, most = min(a.streams), max(a.streams)
    for who in ("ours", "peer"):
        gain = [x / y for x, y in zip(table[most][LOAD[0]][who], table[one][LOAD[0]][who])]
        table[f"{most} over {one}, {who}"] = gain
        print(f"{most} streams over {one}, {who}: {summary(gain)}")
    return table


def gaps_by_window(running, windows):
    """Gaps in milliseconds between tokens of each stream: those that meet a window, and the others."""
    within, outside = [], []
    for record in running["requests"]:
        times = [running["monotonic_start"] + t for t in record["outputs"]]
        for a, b in zip(times, times[1:]):
            met = any(a < end and b > begin for begin, end in windows)
            (within if met else outside).append((b - a) * 1e3)
    return within, outside


def interfere(a, server, seeds):
    """Streams run; meanwhile long prompts are read, one after the other. `seeds`: of the two."""
    flags = ["--random-input-len", 32, "--random-output-len", a.stream_tokens, "--seed", seeds[0], "--save-detailed"]
    running = start_bench(a, server, "--num-prompts", a.running, "--max-concurrency", a.running, *flags)
    time.sleep(1)  # all of them are past their own short prompts
    long = run_bench(a, server, "--num-prompts", a.long_prompts, "--max-concurrency", 1, "--random-input-len", a.long,
                     "--random-output-len", 1, "--seed", seeds[1], "--save-detailed")  # fmt: skip
    running = finish_bench(running)
    begin = long["monotonic_start"]
    last = min(running["monotonic_start"] + r["ended"] for r in running["requests"])
    windows = [(begin + r["sent"], begin + r["ended"]) for r in long["requests"] if begin + r["ended"] < last]
    within, outside = gaps_by_window(running, windows)
    if not windows:
        raise SystemExit(f"{server.name}: the streams ended before a long prompt was read: raise --stream-tokens")
    return {
        "long_prompts_met": len(windows),
        "p50_itl_ms": percentile(within, 50), "p99_itl_ms": percentile(within, 99), "max_itl_ms": max(within),
        "p99_itl_alone_ms": percentile(outside or within, 99), "median_long_ttft_ms": long["median_ttft_ms"],
        "cached_percent": 100 * sum(x["total_cached_tokens"] for x in (running, long))
        / sum(x["total_input_tokens"] for x in (running, long)),
    }  # fmt: skip


def interference_scenario(a):
    context = a.long + 256
    whole = a.long + a.running + 64
    makers = {
        "omnibus, in pieces": lambda: omnibus(a, a.running + 1, context),
        "llama.cpp, in pieces": lambda: llama(a, a.running + 1, context),
        "omnibus, whole": lambda: omnibus(a, a.running + 1, context, whole),
        "llama.cpp, whole": lambda: llama(a, a.running + 1, context, whole),
    }
    rows = {name: [] for name in makers}
    for pair in range(a.interference_pairs):
        names = list(makers)
        seeds = [next(SEEDS) for _ in range(3)]
        for name in names if pair % 2 == 0 else names[::-1]:
            server = makers[name]().wait_ready()
            try:
                run_bench(a, server, "--num-prompts", a.running, "--random-input-len", 64, "--random-output-len", 8,
                          "--seed", seeds[0])  # fmt: skip
                row = interfere(a, server, seeds[1:])
            finally:
                server.stop()
            rows[name].append(row)
            print(f"pair {pair + 1}, {name:22} ITL p50 {row['p50_itl_ms']:7.1f}  p99 {row['p99_itl_ms']:8.1f}  max "
                  f"{row['max_itl_ms']:8.1f} ms  (p99 alone {row['p99_itl_alone_ms']:6.1f})   TTFT of the long prompt "
                  f"{row['median_long_ttft_ms']:8.1f} ms  ({row['long_prompts_met']} prompts)"
                  f"  cached {row['cached_percent']:.2f} %", flush=True)  # fmt: skip
    for how in ("in pieces", "whole"):
        ratios = [o["p99_itl_ms"] / t["p99_itl_ms"] for o, t in zip(rows[f"omnibus, {how}"], rows[f"llama.cpp, {how}"])]
        print(f"{how:9}  p99 ITL during a prompt of {a.long} tokens, ours over peer: {summary(ratios)}")
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--omnibus", required=True)
    p.add_argument("--llama", required=True, help="llama-server of the peer")
    p.add_argument("--model", required=True, help="GGUF file")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--scenario", choices=("streams", "prefill-interference", "all"), default="all")
    p.add_argument("--streams", type=int, nargs="+", default=[1, 8, 32])
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--rounds", type=int, default=2, help="requests of a run, in multiples of its streams")
    p.add_argument("--fewest", type=int, default=4, help="requests of a run, at least")
    p.add_argument("--input", type=int, default=128, help="tokens of a prompt")
    p.add_argument("--output", type=int, default=128, help="tokens of an answer")
    p.add_argument("--long", type=int, default=4000, help="tokens of the prompt that interferes")
    p.add_argument("--long-prompts", type=int, default=3, help="how many of those, one after the other")
    p.add_argument("--running", type=int, default=4, help="streams that it interferes with")
    p.add_argument("--stream-tokens", type=int, default=1200, help="how long those are")
    p.add_argument("--interference-pairs", type=int, default=3)
    p.add_argument("--short", action="store_true", help="two pairs of streams, one of interference, shorter answers")
    p.add_argument("--json", help="file for all figures and settings")
    a = p.parse_args()
    if a.short:
        a.pairs, a.interference_pairs, a.output, a.rounds, a.long_prompts, a.stream_tokens = 2, 1, 64, 1, 1, 600
    result = {}
    if a.scenario in ("streams", "all"):
        result["streams"] = streams_scenario(a)
    if a.scenario in ("prefill-interference", "all"):
        result["prefill-interference"] = interference_scenario(a)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"settings": vars(a), "result": result}, f, indent=1)


if __name__ == "__main__":
    main()
