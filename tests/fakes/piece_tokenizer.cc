#include "fakes/piece_tokenizer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "omnibus/base/common/check.h"

namespace omnibus::fakes {
namespace {

class PieceTokenizer final : public Tokenizer {
 public:
  explicit PieceTokenizer(const PieceVocabulary& v) {
    spec_.model = "pieces";
    spec_.pre = "default";
    for (int b = 0; b < 256; ++b) add(std::string(1, static_cast<char>(b)), TokenKind::kByte);
    for (const auto& special : v.specials) add(special, TokenKind::kControl);
    for (const auto& piece : v.pieces) add(piece, TokenKind::kNormal);
    spec_.eos = special_id(v.eos);
    spec_.bos = special_id(v.bos);
    spec_.chat_template = v.chat_template;
    auto& eog = spec_.end_of_generation;
    for (const auto& text : v.end_of_generation) eog.push_back(special_id(text));
    if (spec_.eos != kNoToken) eog.push_back(spec_.eos);
    std::sort(eog.begin(), eog.end());
    eog.erase(std::unique(eog.begin(), eog.end()), eog.end());
  }

  std::vector<TokenId> encode(std::span<const TextSegment> segments,
                              const EncodeOptions& options) const override {
    std::vector<TokenId> ids;
    for (const auto& segment : segments) encode_segment(segment, ids);
    const bool has_bos = !ids.empty() && ids.front() == spec_.bos;
    if (options.add_special_tokens && spec_.bos != kNoToken && !has_bos) ids.insert(ids.begin(), spec_.bos);
    return ids;
  }

  std::string_view token_bytes(TokenId id) const override { return spec_.tokens[static_cast<size_t>(id)]; }
  bool is_special(TokenId id) const override {
    return spec_.kinds[static_cast<size_t>(id)] == TokenKind::kControl;
  }
  TokenId find_token(std::string_view text) const override {
    const auto it = ids_.find(text);
    return it == ids_.end() ? kNoToken : it->second;
  }
  const TokenizerSpec& spec() const override { return spec_; }

 private:
  void add(const std::string& bytes, TokenKind kind) {
    if (!ids_.emplace(bytes, static_cast<TokenId>(spec_.tokens.size())).second) return;
    spec_.tokens.push_back(bytes);
    spec_.kinds.push_back(kind);
  }

  TokenId special_id(const std::string& text) const {
    if (text.empty()) return kNoToken;
    const TokenId id = find_token(text);
    OMNIBUS_CHECK(id != kNoToken && is_special(id), "eos, bos and end_of_generation must be among specials");
    return id;
  }

  // The longest special token that `text` begins with.
  TokenId special_prefix(std::string_view text) const {
    TokenId best = kNoToken;
    size_t best_size = 0;
    for (size_t i = 256; i < spec_.tokens.size(); ++i) {
      const std::string& token = spec_.tokens[i];
      if (spec_.kinds[i] != TokenKind::kControl || token.size() <= best_size) continue;
      if (text.substr(0, token.size()) != token) continue;
      best = static_cast<TokenId>(i);
      best_size = token.size();
    }
    return best;
  }

  void encode_segment(const TextSegment& segment, std::vector<TokenId>& ids) const {
    std::string_view rest = segment.text;
    while (!rest.empty()) {
      const TokenId special = segment.trusted ? special_prefix(rest) : kNoToken;
      const size_t n = special == kNoToken ? 1 : token_bytes(special).size();
      ids.push_back(special == kNoToken ? static_cast<unsigned char>(rest[0]) : special);
      rest.remove_prefix(n);
    }
  }

  TokenizerSpec spec_;
  std::map<std::string, TokenId, std::less<>> ids_;
};

}  // namespace

std::shared_ptr<const Tokenizer> make_piece_tokenizer(const PieceVocabulary& vocabulary) {
  return std::make_shared<PieceTokenizer>(vocabulary);
}

}  // namespace omnibus::fakes
