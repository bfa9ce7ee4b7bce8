#!/bin/sh
# Measures omnibus beside llama.cpp on the default model: both servers over HTTP, in turns (speed).
#   bench.sh [any option of benchmarks/peers/llama_cpp/compare.py]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
sh scripts/install_deps.sh build test
sh scripts/build.sh release
sh benchmarks/peers/llama_cpp/fetch_and_build.sh >&2
exec python3 benchmarks/peers/llama_cpp/compare.py --omnibus build/omnibus \
  --llama out/peers/llama_cpp/build/bin/llama-server --model "$(sh scripts/default_model.sh)" "$@"
