#!/bin/sh
# Prints the path of a Python that has tests/oracles/requirements.txt; made anew when that file changes.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv=$root/out/oracles
wanted=$(sha256sum < "$root/tests/oracles/requirements.txt")
if [ "$(cat "$venv/requirements.sha256" 2>/dev/null)" != "$wanted" ]; then
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$root/tests/oracles/requirements.txt" >&2
  printf '%s\n' "$wanted" > "$venv/requirements.sha256"
fi
echo "$venv/bin/python"
