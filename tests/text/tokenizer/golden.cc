#include "golden.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

namespace omnibus::testing {
namespace {

std::string unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "\\x") == 0) {
      out.push_back(static_cast<char>(std::stoi(text.substr(i + 2, 2), nullptr, 16)));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::ifstream open(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) ADD_FAILURE() << "cannot open " << path;
  return file;
}

std::vector<std::string> read_strings(const std::filesystem::path& path) {
  std::ifstream file = open(path);
  std::vector<std::string> strings;
  std::string line;
  std::getline(file, line);  // the header
  while (std::getline(file, line)) strings.push_back(unescape(line));
  return strings;
}

void read_tokens(std::istream& file, size_t count, TokenizerSpec& spec) {
  std::string line;
  for (size_t i = 0; i < count && std::getline(file, line); ++i) {
    const size_t first = line.find(' '), second = line.find(' ', first + 1);
    spec.kinds.push_back(static_cast<TokenKind>(std::stoi(line.substr(0, first))));
    spec.scores.push_back(std::stof(line.substr(first + 1, second - first - 1)));
    spec.tokens.push_back(unescape(line.substr(second + 1)));
  }
}

ExpectedIds read_expected(std::istream& fields, const std::string& count) {
  ExpectedIds expected;
  std::string hash;
  fields >> hash;
  expected.count = std::stoul(count);
  expected.hash = std::stoull(hash, nullptr, 16);
  return expected;
}

void read_ids_line(const std::string& line, Golden& golden) {
  std::istringstream fields(line);
  std::string word;
  fields >> word;
  if (word == "-") {
    golden.trusted.emplace_back();
    golden.untrusted.emplace_back();
    return;
  }
  ExpectedIds trusted = read_expected(fields, word);
  fields >> word;
  const bool same = word == "=";
  ExpectedIds untrusted = same ? trusted : read_expected(fields, word);
  std::vector<TokenId> ids[2];
  bool any = trusted.count == 0;
  int which = 0;
  while (fields >> word) {
    if (word == "/") {
      which = 1;
    } else {
      ids[which].push_back(std::stoi(word));
      any = true;
    }
  }
  if (any) {
    trusted.ids = ids[0];
    untrusted.ids = same ? ids[0] : ids[1];
  }
  golden.trusted.emplace_back(std::move(trusted));
  golden.untrusted.emplace_back(std::move(untrusted));
}

void set_value(const std::string& key, const std::string& value, TokenizerSpec& spec) {
  if (key == "model") spec.model = value;
  if (key == "pre") spec.pre = value;
  if (key == "bos") spec.bos = std::stoi(value);
  if (key == "eos") spec.eos = std::stoi(value);
  if (key == "unknown") spec.unknown = std::stoi(value);
  if (key == "add_space_prefix") spec.add_space_prefix = value == "1";
}

std::filesystem::path committed_folder() {
  return std::filesystem::path(OMNIBUS_SOURCE_DIR) / "tests/text/tokenizer/goldens";
}

std::string show(const std::vector<TokenId>& ids, const Tokenizer& tokenizer) {
  std::ostringstream out;
  for (const TokenId id : ids) out << id << "'" << tokenizer.spec().tokens[static_cast<size_t>(id)] << "' ";
  return out.str();
}

bool matches(const Tokenizer& tokenizer, const std::string& text, bool trusted, const ExpectedIds& expected) {
  const std::vector<TokenId> ids = tokenizer.encode(text, trusted);
  if (ids.size() == expected.count && hash_ids(ids) == expected.hash) return true;
  ADD_FAILURE() << (trusted ? "trusted '" : "untrusted '") << text << "'\n  is     " << show(ids, tokenizer)
                << "\n  should "
                << (expected.ids ? show(*expected.ids, tokenizer)
                                 : "be " + std::to_string(expected.count) + " ids of another hash");
  return false;
}

}  // namespace

Golden read_golden(const std::filesystem::path& path) {
  Golden golden;
  golden.name = path.stem().string();
  std::ifstream file = open(path);
  TokenizerSpec spec;
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("#")) continue;
    const size_t space = line.find(' ');
    const std::string key = line.substr(0, space), value = line.substr(space + 1);
    if (key == "strings") {
      golden.strings = read_strings(path.parent_path() / value);
    } else if (key == "tokens") {
      read_tokens(file, std::stoul(value), spec);
    } else if (key == "merges") {
      for (size_t i = std::stoul(value); i > 0 && std::getline(file, line); --i) {
        spec.merges.push_back(unescape(line));
      }
    } else if (key == "ids") {
      while (std::getline(file, line)) read_ids_line(line, golden);
      EXPECT_EQ(golden.trusted.size(), std::stoul(value));
    } else {
      set_value(key, value, spec);
    }
  }
  if (!spec.tokens.empty()) golden.spec = std::move(spec);
  EXPECT_EQ(golden.trusted.size(), golden.strings.size()) << path;
  return golden;
}

std::vector<std::filesystem::path> golden_paths() {
  std::vector<std::filesystem::path> paths;
  const char* extra = std::getenv("OMNIBUS_TOKENIZER_GOLDENS");
  for (const std::filesystem::path& folder :
       {committed_folder(), std::filesystem::path(extra ? extra : "")}) {
    if (folder.empty()) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".golden") paths.push_back(entry.path());
    }
  }
  return paths;
}

const Golden& committed_golden(const std::string& name) {
  static std::map<std::string, Golden> read;
  const auto found = read.find(name);
  if (found != read.end()) return found->second;
  return read.emplace(name, read_golden(committed_folder() / (name + ".golden"))).first->second;
}

std::shared_ptr<const Tokenizer> make_tokenizer(const Golden& golden) {
  auto tokenizer = Tokenizer::create(*golden.spec);
  EXPECT_TRUE(tokenizer.ok()) << golden.name << ": " << tokenizer.status();
  return tokenizer.ok() ? *tokenizer : nullptr;
}

uint64_t hash_ids(const std::vector<TokenId>& ids) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const TokenId id : ids) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ (static_cast<uint32_t>(id) >> shift & 0xFFu)) * 0x100000001B3u;
    }
  }
  return hash;
}

void expect_golden_ids(const Tokenizer& tokenizer, const Golden& golden) {
  constexpr int kReported = 10;
  int wrong = 0;
  size_t compared = 0;
  for (size_t i = 0; i < golden.strings.size() && wrong < kReported; ++i) {
    if (!golden.trusted[i]) continue;
    ++compared;
    wrong += !matches(tokenizer, golden.strings[i], true, *golden.trusted[i]);
    wrong += !matches(tokenizer, golden.strings[i], false, *golden.untrusted[i]);
  }
  EXPECT_GT(compared, golden.strings.size() * 9 / 10) << golden.name;
}

}  // namespace omnibus::testing
