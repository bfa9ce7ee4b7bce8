#!/bin/sh
# From a bare Debian 12 machine to a running server: installs what the build needs, builds, fetches the model, serves.
#   serve.sh [MODEL] [any option of `omnibus serve`]
# A second run finds all of it done and is ready in a second or two.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
sh "$root/scripts/install_deps.sh" build
sh "$root/scripts/build.sh" release omnibus_program
# Only the default model can be fetched; a MODEL that the caller names is the caller's.
case "${1-}" in
  '' | -*) [ -n "${OMNIBUS_MODEL-}" ] || "$root/build/omnibus" pull >&2 ;;
esac
exec "$root/build/omnibus" serve "$@"
