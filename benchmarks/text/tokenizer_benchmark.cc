// Tokenizer throughput on one core: bench_tokenizer MODEL.gguf TEXT... [--benchmark_... flags]
// Each TEXT file is encoded and decoded; then 16 MiB of hostile input of several kinds is encoded.
// hf_tokenizers.py runs Hugging Face's tokenizers on the same files.
#include <cstdio>
#include <fstream>
#include <sstream>

#include <benchmark/benchmark.h>

#include "omnibus/store/model_files/gguf.h"
#include "omnibus/text/tokenizer/tokenizer.h"

namespace omnibus {
namespace {

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

StatusOr<TokenizerSpec> read_spec(const std::string& path) {
  OMNIBUS_ASSIGN_OR_RETURN(const auto file, GgufFile::open(path));
  return read_tokenizer_spec(*file);
}

void encode(benchmark::State& state, const TokenizerPtr& tokenizer, const std::string& text) {
  size_t ids = 0;
  for (auto _ : state) {
    const std::vector<TokenId> encoded = tokenizer->encode(text, false);
    ids = encoded.size();
    benchmark::DoNotOptimize(encoded.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
  state.counters["ids"] = static_cast<double>(ids);
}

void decode(benchmark::State& state, const TokenizerPtr& tokenizer, const std::string& text) {
  const std::vector<TokenId> ids = tokenizer->encode(text, false);
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer->decode(ids, true).data());
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}

void create(benchmark::State& state, const TokenizerSpec& spec) {
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::create(spec).ok());
}

void register_texts(const TokenizerPtr& tokenizer, int count, char** paths) {
  for (int i = 0; i < count; ++i) {
    std::ifstream file(paths[i], std::ios::binary);
    std::ostringstream content;
    content << file.rdbuf();
    const std::string text = content.str();
    benchmark::RegisterBenchmark(("encode/" + std::string(paths[i])).c_str(),
                                 [=](benchmark::State& state) { encode(state, tokenizer, text); });
    benchmark::RegisterBenchmark(("decode/" + std::string(paths[i])).c_str(),
                                 [=](benchmark::State& state) { decode(state, tokenizer, text); });
  }
}

void register_hostile(const TokenizerPtr& tokenizer) {
  constexpr size_t kBytes = size_t{16} << 20;
  struct {
    const char *name, *unit;
  } const inputs[] = {
      {"a", "a"},     {"space", " "},      {"newline", "\n"},         {"digit", "7"},
      {"emoji", "😀"}, {"invalid", "\xFF"}, {"marks", "\u0307\u0323"}, {"almost_special", "<|im_end|"}};
  for (const auto& input : inputs) {
    std::string text;
    while (text.size() < kBytes) text += input.unit;
    benchmark::RegisterBenchmark(("encode_16MiB/" + std::string(input.name)).c_str(),
                                 [=](benchmark::State& state) { encode(state, tokenizer, text); });
  }
  std::string letters;
  for (uint32_t x = 1; letters.size() < kBytes; x = x * 1664525 + 1013904223) {
    letters.push_back(static_cast<char>('a' + (x >> 24) % 26));
  }
  benchmark::RegisterBenchmark("encode_16MiB/letters",
                               [=](benchmark::State& state) { encode(state, tokenizer, letters); });
}

}  // namespace
}  // namespace omnibus

int main(int argc, char** argv) {
  using namespace omnibus;
  benchmark::Initialize(&argc, argv);
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_tokenizer MODEL.gguf TEXT... [--benchmark_min_time=...]\n");
    return 2;
  }
  const auto spec = read_spec(argv[1]);
  const auto tokenizer = spec.ok() ? Tokenizer::create(*spec) : StatusOr<TokenizerPtr>(spec.status());
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.status().ToString().c_str());
    return 1;
  }
  benchmark::RegisterBenchmark("create", [&](benchmark::State& state) { create(state, *spec); });
  register_texts(*tokenizer, argc - 2, argv + 2);
  register_hostile(*tokenizer);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
