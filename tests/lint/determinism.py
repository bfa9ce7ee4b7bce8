"""What scheduler, KV cache, the engine's state machines and the simulation may not use, so that a run is a function of its
calls and its seed: clocks, threads, sleeping, other randomness, the order of unordered containers, the order of pointers."""

import re

PLACES = (
    "tests/sim/",
    "src/control/kv_cache/",
    "src/control/scheduler/",
    "include/omnibus/control/kv_cache/",
    "include/omnibus/control/scheduler/",
    *(f"src/control/engine/{name}." for name in (
        "engine_core", "request_admission", "request_ledger", "step_cost_fit", "watchdog")),
)
# (file, ban): why it may.
EXCEPTIONS = {
    ("src/control/engine/request_ledger.h", "thread"): "wait_empty() is for the thread that drains, not for the core",
}
BANS = {
    "clock": (r"\b\w+_clock\b|\bclock_gettime\b|\bgettimeofday\b|\bstd::time\b", "time comes from an injected Clock"),
    "random": (r"\bs?rand\s*\(|\brandom_device\b|\bmt19937|\brandom_seed\b|\brandom_id\b", "chance comes from the seed"),
    "thread": (r"\bstd::(?:j?thread|async|condition_variable)\b", "one thread"),
    "sleep": (r"\bsleep(?:_for|_until)?\s*\(", "nothing waits"),
    "pointer order": (r"\bstd::(?:multi)?(?:set<[\w:\s]+\*\s*>|map<[\w:\s]+\*\s*,)", "pointers differ from run to run"),
}
_UNORDERED = re.compile(r"\bunordered_\w+<[^;{}]*>\s+(\w+)\s*[;={]")


def check(tree):
    files = [file for file in tree.files if file.path.startswith(PLACES)]
    unordered = {name for file in files for name in _UNORDERED.findall(file.code)}
    for file in files:
        for number, line in enumerate(file.code_lines, 1):
            for name, (pattern, why) in BANS.items():
                if (file.path, name) not in EXCEPTIONS and re.search(pattern, line):
                    yield f"{file.path}:{number}: {name}: {why}"
            for container in unordered:
                if re.search(rf":\s*{container}\s*\)|\b{container}\.c?begin\(", line):
                    yield f"{file.path}:{number}: unordered: the order of {container} is an accident of hashing"
