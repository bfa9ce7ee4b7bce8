"""Each pair that configs/feature_pairs.toml allows has a ctest of its name, and each such ctest a pair."""

import json
import subprocess
import tomllib


def check(text, tests):
    """`text`: the table; `tests`: every ctest's name."""
    table = tomllib.loads(text)
    features, wanted = table["features"], set()
    for pair in table["pairs"]:
        if len(pair) != 2 or pair[0] == pair[1] or not set(pair) <= set(features):
            yield f"configs/feature_pairs.toml: {pair} is not a pair of two of its features"
            continue
        name = f"feature_pair.{pair[0]}+{pair[1]}"
        if name in wanted or f"feature_pair.{pair[1]}+{pair[0]}" in wanted:
            yield f"configs/feature_pairs.toml: {pair} stands there twice"
        wanted.add(name)
        if name not in tests:
            yield f"configs/feature_pairs.toml: {pair} is allowed, but there is no ctest '{name}'"
    for name in sorted(tests):
        if name.startswith("feature_pair.") and name not in wanted:
            yield f"ctest '{name}' tests a pair that configs/feature_pairs.toml does not allow"


def ctest_names(build_folder):
    command = ["ctest", "--test-dir", build_folder, "--show-only=json-v1"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    return {test["name"] for test in json.loads(shown.stdout)["tests"]}
