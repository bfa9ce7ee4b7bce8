// omnibus-eval: full logits of given token sequences, teacher-forced, for measures against a reference.
//
//   omnibus-eval MODEL.gguf IDS.txt --out FILE [--numerics fast|f32] [--threads N] [--cpu-isa ISA] [--chunk
//   N]
//
// IDS.txt: one sequence of token ids per line, separated by blanks; empty lines are skipped. FILE,
// little-endian:
//   char[8] "OMNILOGT", u32 version (1), u32 vocabulary V, u32 sequences; per sequence: u32 length n, then n
//   rows of V f32: row p holds the raw logits after tokens 0 .. p.
// The exit status is 0, or 1 with a message on stderr.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "omnibus/compute/ops/device_ops.h"

#include "compute/support/teacher_forcing.h"

namespace omnibus {
namespace {

struct Options {
  std::string model, ids, out, numerics = "fast", isa = "auto";
  int32_t threads = 0;
  int32_t chunk = 256;
};

StatusOr<std::vector<std::vector<TokenId>>> read_sequences(const std::string& path) {
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(fmt::format("cannot read '{}'", path));
  std::vector<std::vector<TokenId>> sequences;
  int line_number = 0;
  for (std::string line; std::getline(in, line);) {
    ++line_number;
    std::istringstream words(line);
    std::vector<TokenId> ids;
    for (std::string word; words >> word;) {
      TokenId id = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
      if (error != std::errc() || end != word.data() + word.size())
        return absl::InvalidArgumentError(fmt::format("{}:{}: '{}' is no token id", path, line_number, word));
      ids.push_back(id);
    }
    if (!ids.empty()) sequences.push_back(std::move(ids));
  }
  if (sequences.empty()) return absl::InvalidArgumentError(fmt::format("'{}' holds no sequence", path));
  return sequences;
}

void write_u32(std::ofstream& out, size_t value) {
  const auto v = static_cast<uint32_t>(value);
  out.write(reinterpret_cast<const char*>(&v), sizeof v);
}

Status evaluate(const Options& options) {
  OMNIBUS_ASSIGN_OR_RETURN(const auto sequences, read_sequences(options.ids));
  TeacherForcingOptions forcing;
  forcing.numerics = options.numerics == "f32" ? Numerics::kF32 : Numerics::kFast;
  OMNIBUS_ASSIGN_OR_RETURN(forcing.cpu_isa, parse_cpu_isa(options.isa));
  forcing.threads = options.threads;
  forcing.chunk = options.chunk;
  for (const auto& ids : sequences)
    forcing.max_tokens = std::max(forcing.max_tokens, static_cast<int32_t>(ids.size()));
  OMNIBUS_ASSIGN_OR_RETURN(auto file, GgufFile::open(options.model));
  OMNIBUS_ASSIGN_OR_RETURN(const auto model, TeacherForcing::create(std::move(file), forcing));
  std::ofstream out(options.out, std::ios::binary);
  out.write("OMNILOGT", 8);
  write_u32(out, 1);
  write_u32(out, static_cast<size_t>(model->vocab_size()));
  write_u32(out, sequences.size());
  for (const auto& ids : sequences) {
    write_u32(out, ids.size());
    OMNIBUS_RETURN_IF_ERROR(model->run(ids, 0, [&](int32_t, std::span<const float> logits) {
      out.write(reinterpret_cast<const char*>(logits.data()),
                static_cast<std::streamsize>(logits.size_bytes()));
    }));
  }
  out.close();
  if (!out) return absl::UnavailableError(fmt::format("cannot write '{}'", options.out));
  return absl::OkStatus();
}

}  // namespace
}  // namespace omnibus

int main(int argc, char** argv) {
  omnibus::Options options;
  CLI::App app("Full logits of given token sequences");
  app.add_option("MODEL", options.model, "GGUF file")->required();
  app.add_option("IDS", options.ids, "Text file, one sequence of token ids per line")->required();
  app.add_option("--out", options.out, "Output file")->required();
  app.add_option("--numerics", options.numerics, "fast or f32")->check(CLI::IsMember({"fast", "f32"}));
  app.add_option("--threads", options.threads, "Compute threads; 0: one per core")
      ->check(CLI::Range(0, 1024));
  app.add_option("--cpu-isa", options.isa, "auto, generic, avx2 or avx512");
  app.add_option("--chunk", options.chunk, "Tokens per forward pass")->check(CLI::Range(1, 65536));
  CLI11_PARSE(app, argc, argv);
  const omnibus::Status status = omnibus::evaluate(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "omnibus-eval: %s\n", omnibus::status_message(status).c_str());
  return 1;
}
