#!/bin/sh
# Measures omnibus beside llama.cpp on the default model.
#   bench.sh [speed | accuracy]    default both
# speed: both servers over HTTP, in turns; accuracy: KL, top-1 and perplexity against a float64 forward pass.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
case "${1-}" in '' | speed | accuracy) ;; *)
  echo "usage: bench.sh [speed | accuracy]" >&2
  exit 2
  ;;
esac
sh scripts/install_deps.sh build test
sh scripts/build.sh release
sh benchmarks/peers/llama_cpp/fetch_and_build.sh >&2
peer=out/peers/llama_cpp
model=$(sh scripts/default_model.sh)
if [ "${1-speed}" = speed ]; then
  python3 benchmarks/peers/llama_cpp/compare.py --omnibus build/omnibus --llama $peer/build/bin/llama-server \
    --model "$model"
fi
if [ "${1-accuracy}" = accuracy ]; then
  "$(sh scripts/oracle_python.sh)" benchmarks/accuracy/accuracy.py --eval build/omnibus-eval --peer $peer/llama_eval \
    --model "$model"
fi
