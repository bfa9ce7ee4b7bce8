#!/bin/sh
# Runs llama.cpp's own server tests against omnibus. Usage: run.sh [PYTEST ARGUMENT...]   (default: all of them)
# The last line is "N passed, N failed, N deselected (by reason)"; exit code 0 only when nothing failed and at least
# OMNIBUS_PEER_BAR tests passed.
# Environment: OMNIBUS_LLAMA_CPP_DIR (a tree of llama.cpp, used in place of fetching it), OMNIBUS_BUILD_DIR (default
# build/), OMNIBUS_PYTHON (a Python with tests/e2e/requirements.txt; default: out/venv, made when absent).
set -eu
PATH=/usr/bin:/bin:$PATH # Debian's python3, whose modules scripts/packages.txt names
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
tree=$(sh "$here/fetch.sh")
python=${OMNIBUS_PYTHON:-$(sh "$root/scripts/python_env.sh" out/venv tests/e2e/requirements.txt)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
OMNIBUS_PROGRAM=$(cd "${OMNIBUS_BUILD_DIR:-$root/build}" && pwd)/omnibus
OMNIBUS_PEER_MODEL=$work/stories.gguf
LLAMA_SERVER_BIN_PATH=$here/llama_server.py
export OMNIBUS_PROGRAM OMNIBUS_PEER_MODEL LLAMA_SERVER_BIN_PATH PYTHONDONTWRITEBYTECODE=1
python3 "$here/peer_model.py" "$OMNIBUS_PEER_MODEL"
[ $# -gt 0 ] || set -- unit
[ "$*" != unit ] || export OMNIBUS_PEER_BAR="${OMNIBUS_PEER_BAR:-95}"
cd "$tree/tools/server/tests"
PYTHONPATH=$here "$python" -m pytest -p plugin -p no:cacheprovider -q --tb=short "$@"
