#!/bin/sh
# Instruction-set objects must define no weak symbol: the linker may keep that copy for the whole program, and an older
# CPU then meets an illegal instruction (docs/cpu-kernels.md, run-time dispatch). Sanitizers' own symbols are not ours.
#   weak_symbols.sh NM OBJECT...
nm=$1
shift
[ $# -gt 0 ] || { echo "no object given" >&2; exit 2; }
for object in "$@"; do
  "$nm" "$object" >/dev/null || exit 2
  found=$("$nm" -C "$object" | grep -E ' [VWu] ' | grep -vE ' w |__asan|__ubsan|__tsan|__odr_asan|DW\.ref' || true)
  if [ -n "$found" ]; then
    echo "$object defines weak symbols:" >&2
    echo "$found" >&2
    exit 1
  fi
done
echo "$# objects, no weak symbol"
