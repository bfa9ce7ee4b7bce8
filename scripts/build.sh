#!/bin/sh
# Configures (when needed) and builds; leaves links to the programs in build/, those of sanitizers in out/PRESET/programs.
#   build.sh [PRESET [TARGET...]]     PRESET: release (default), bench, debug, asan, tsan, fuzz
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
preset=${1:-release}
[ $# -eq 0 ] || shift
out=out/$preset

# Everything: look again for the tools that tests use; they may have come since the last time.
if [ $# -eq 0 ] || [ ! -f "$out/build.ninja" ]; then cmake --preset "$preset" >&2; fi
# A compile may take 1 GB: no more jobs at once than memory allows.
jobs=$(nproc)
by_memory=$(awk '/^MemAvailable:/ {n = int($2 / 1048576); print (n > 1 ? n : 1)}' /proc/meminfo)
[ "$jobs" -le "$by_memory" ] || jobs=$by_memory
cmake --build "$out" -j "$jobs" ${1:+--target "$@"} >&2

links=build
up=..
case $preset in
  asan | tsan)
    links=$out/programs
    up=../../..
    ;;
esac
mkdir -p "$links"
for name in omnibus omnibus-replay omnibus-eval; do
  program=$(find "$out/$name" "$out/src" "$out/tests" -type f -name "$name" -perm -u+x 2>/dev/null | head -n 1)
  [ -z "$program" ] || ln -sfn "$up/$program" "$links/$name"
done
