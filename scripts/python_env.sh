#!/bin/sh
# Prints the path of a Python with the packages of a requirements file; made anew when that file changes.
#   python_env.sh FOLDER REQUIREMENTS
set -eu
[ $# -eq 2 ] || {
  echo "usage: python_env.sh FOLDER REQUIREMENTS" >&2
  exit 2
}
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
wanted=$(sha256sum "$2")
if [ "$(cat "$1/requirements.sha256" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$1"
  python3 -m venv "$1"
  "$1/bin/pip" install --quiet --disable-pip-version-check -r "$2" >&2
  printf '%s\n' "$wanted" > "$1/requirements.sha256"
fi
echo "$root/$1/bin/python"
