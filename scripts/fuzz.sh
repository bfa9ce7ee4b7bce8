#!/bin/sh
# Builds the libFuzzer targets (clang, AddressSanitizer, UBSan) and runs each of them.
#   fuzz.sh [SECONDS]     per target, default 30
# What they find lies in out/fuzz/findings; inputs that reach new code are kept in out/fuzz/corpus.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
sh scripts/install_deps.sh build test fuzz
# shellcheck disable=SC2046,SC2012
sh scripts/build.sh fuzz $(cd tests/fuzz && ls fuzz_*.cc | sed 's/\.cc$//')
mkdir -p out/fuzz/findings
for program in out/fuzz/tests/fuzz/fuzz_*; do
  [ -f "$program" ] || continue
  name=${program##*/fuzz_}
  mkdir -p "out/fuzz/corpus/$name"
  echo "== $name" >&2
  "$program" -max_total_time="${1:-30}" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="out/fuzz/findings/$name-" "out/fuzz/corpus/$name" "tests/fuzz/corpus/$name"
done
