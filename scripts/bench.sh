#!/bin/sh
# Measures the kernels, and omnibus beside llama.cpp on the default model.
#   bench.sh [kernels | engine | speed | serving | accuracy]    default all five
# kernels: Google Benchmark, in shares of what the machine can do right now, short runs
# engine: CPU time of a step without a model; fails above its bar
# speed: both servers over HTTP, one request at a time, in turns
# serving: both under load (the short form of benchmarks/serving/compare.py)
# accuracy: KL, top-1 and perplexity against a float64 forward pass
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
case "${1-}" in '' | kernels | engine | speed | serving | accuracy) ;; *)
  echo "usage: bench.sh [kernels | engine | speed | serving | accuracy]" >&2
  exit 2
  ;;
esac
sh scripts/install_deps.sh build test bench
failed=0 # the other parts run even so
if [ "${1-kernels}" = kernels ]; then
  sh scripts/build.sh bench bench_kernels
  out/bench/benchmarks/kernels/bench_kernels --benchmark_min_time=0.05
  [ $# -eq 0 ] || exit 0
fi
if [ "${1-engine}" = engine ]; then
  sh scripts/build.sh bench bench_engine
  out/bench/benchmarks/engine/bench_engine || failed=1
  [ $# -eq 0 ] || exit $failed
fi
sh scripts/build.sh release
sh benchmarks/peers/llama_cpp/fetch_and_build.sh >&2
peer=out/peers/llama_cpp
model=$(sh scripts/default_model.sh)
if [ "${1-speed}" = speed ]; then
  python3 benchmarks/peers/llama_cpp/compare.py --omnibus build/omnibus --llama $peer/build/bin/llama-server \
    --model "$model"
fi
if [ "${1-serving}" = serving ]; then
  python3 benchmarks/serving/compare.py --omnibus build/omnibus --llama $peer/build/bin/llama-server --model "$model" \
    --short
fi
if [ "${1-accuracy}" = accuracy ]; then
  "$(sh scripts/oracle_python.sh)" benchmarks/accuracy/accuracy.py --eval build/omnibus-eval --peer $peer/llama_eval \
    --model "$model"
fi
exit $failed
