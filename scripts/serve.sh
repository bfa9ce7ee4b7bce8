#!/bin/sh
# From a bare Debian 12 machine to a running server: installs what the build needs, builds, fetches the model, serves.
#   serve.sh [MODEL] [any option of `omnibus serve`]
# A second run finds all of it done and is ready in a second or two.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
sh "$root/scripts/install_deps.sh" build
sh "$root/scripts/build.sh" release omnibus_program
# Only the default model can be fetched; a MODEL that the caller names is the caller's. It comes first, or is a file of
# its kind: behind a flag any other word may be the flag's value.
named=${OMNIBUS_MODEL-}
case "${1-}" in '' | -*) ;; *) named=$1 ;; esac
for argument; do
  case $argument in *.gguf) named=$argument ;; esac
done
[ -n "$named" ] || "$root/build/omnibus" pull >&2
exec "$root/build/omnibus" serve "$@"
