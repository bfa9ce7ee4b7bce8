#!/bin/sh
# Every lint that needs no build.
#   lint.sh            layering, sizes, bans and format
#   lint.sh --format   the format alone
#   lint.sh --fix      formats the sources
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
formatter() {
  find include src kernels tests benchmarks \( -name '*.cc' -o -name '*.h' \) -type f -print0 |
    xargs -0 clang-format-14 "$@"
}
case "${1-}" in
  --fix) formatter -i ;;
  --format) formatter --dry-run -Werror ;;
  '')
    python3 tests/lint/lint.py --root .
    formatter --dry-run -Werror
    ;;
  *)
    echo "usage: lint.sh [--format | --fix]" >&2
    exit 2
    ;;
esac
