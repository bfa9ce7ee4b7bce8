#!/bin/sh
# Installs the Debian packages of scripts/packages.txt that are missing.
#   install_deps.sh [WHEN...]     WHEN: build (default), test, fuzz, soak, bench
# Costs a fraction of a second when nothing is missing. Needs root, or sudo.

# Lists of packages are split on purpose, everywhere below.
# shellcheck disable=SC2086
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- build
wanted=$(awk -v when=" $* " '!/^#/ && NF == 2 && index(when, " " $2 " ") && !seen[$1]++ {print $1}' "$here/packages.txt")

if ! command -v dpkg-query >/dev/null; then
  echo "install_deps: not a Debian system; needed are the counterparts of:" $wanted >&2
  exit 1
fi
installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' | awk '$1 == "installed" {print $2}')
missing=$(printf '%s\n--\n%s\n' "$installed" "$wanted" |
  awk '/^--$/ {list = 1; next} !list {have[$1] = 1; next} !($1 in have)')
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install_deps: missing packages, and neither root nor sudo to install them:" $missing >&2
    exit 1
  fi
  as_root=sudo
fi
echo "install_deps: installing" $missing >&2
export DEBIAN_FRONTEND=noninteractive
# An index that is there may be too old or of another source; a second try with a new one settles it.
install() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2; }
if [ -z "$(find /var/lib/apt/lists -name '*_Packages*' 2>/dev/null | head -n 1)" ] || ! install; then
  $as_root apt-get update -qq >&2
  install
fi
