// Reads what tests/oracles/tokenizer_goldens.py writes (the format is described there).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/text/tokenizer/tokenizer.h"

namespace omnibus::testing {

struct ExpectedIds {
  size_t count = 0;
  uint64_t hash = 0;
  std::optional<std::vector<TokenId>> ids;  // the first strings of a golden only
};

struct Golden {
  std::string name;
  std::optional<TokenizerSpec> spec;  // absent in a golden whose vocabulary is in a model file
  std::vector<std::string> strings;
  // Per string; nullopt where the oracle has no answer.
  std::vector<std::optional<ExpectedIds>> trusted, untrusted;
};

Golden read_golden(const std::filesystem::path& path);

// All *.golden with a vocabulary: the committed ones, then those in the folder OMNIBUS_TOKENIZER_GOLDENS
// names.
std::vector<std::filesystem::path> golden_paths();

// The committed golden of this name, read once.
const Golden& committed_golden(const std::string& name);
std::shared_ptr<const Tokenizer> make_tokenizer(const Golden& golden);

// FNV-1a over the ids as little-endian int32.
uint64_t hash_ids(const std::vector<TokenId>& ids);

// Encodes every string of the golden both ways and compares; stops after a few failures.
void expect_golden_ids(const Tokenizer& tokenizer, const Golden& golden);

}  // namespace omnibus::testing
