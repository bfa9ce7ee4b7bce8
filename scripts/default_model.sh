#!/bin/sh
# Prints the path of the default model's file, fetched into the store when absent. Needs build/omnibus.
# OMNIBUS_TEST_MODEL, when set, is taken as it is.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
if [ -n "${OMNIBUS_TEST_MODEL-}" ]; then
  echo "$OMNIBUS_TEST_MODEL"
  exit
fi
"$root/build/omnibus" pull >&2
home=${OMNIBUS_HOME:-$HOME/.cache/omnibus}
digest=$(sed -n 's/^ *"digest": "sha256:\([0-9a-f]*\)".*/\1/p' "$home/manifests/smollm2/135m.json")
# A link that carries the file's own name: what is served by path is named after it.
mkdir -p "$root/out/models"
ln -sfn "$home/blobs/sha256-$digest" "$root/out/models/SmolLM2-135M-Instruct.Q4_1.gguf"
echo "$root/out/models/SmolLM2-135M-Instruct.Q4_1.gguf"
