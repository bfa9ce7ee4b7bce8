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
# Under the file's own name, since what is served by path is named after it. Not a symbolic link: the loader follows none
# that leads out of its folder.
file=$root/out/models/SmolLM2-135M-Instruct.Q4_1.gguf
blob=$home/blobs/sha256-$digest
mkdir -p "$root/out/models"
rm -f "$file"
ln "$blob" "$file" 2>/dev/null || cp "$blob" "$file"
echo "$file"
