#include "logprob_json.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "omnibus/text/tokenizer/incremental_detokenizer.h"

namespace omnibus {
namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

Json bytes_json(const std::string& bytes) {
  Json out = Json::array();
  for (const char c : bytes) out.push_back(static_cast<unsigned char>(c));
  return out;
}

Json chat_entry(const TokenLogprob& token, const std::string& bytes, bool as_ids) {
  Json entry;
  entry["token"] = logprob_token_text(token.id, bytes, as_ids);
  entry["logprob"] = token.logprob;
  entry["bytes"] = bytes_json(bytes);
  return entry;
}

// An object of many members: ordered_json looks through all it has for each key, which takes minutes when
// there is a member for each token of a vocabulary.
class WideObject {
 public:
  explicit WideObject(size_t members) {
    keys_.reserve(members);
    members_.reserve(members);
  }

  // The first value of a key stays.
  void add(const std::string& key, Json value) {
    if (keys_.insert(key).second) members_.emplace_back(key, std::move(value));
  }
  Json take() { return std::move(members_); }

 private:
  std::unordered_set<std::string> keys_;
  Json::object_t members_;
};

}  // namespace

std::string logprob_token_text(TokenId id, const std::string& bytes, bool as_id) {
  if (as_id) return fmt::format("token_id:{}", id);
  std::string rest = bytes;
  std::string text;
  append_valid_utf8(rest, text, /*flush=*/true);
  return text;
}

Json chat_logprobs(const std::vector<PositionLogprobs>& positions, bool as_ids) {
  Json out = Json::array();
  for (const PositionLogprobs& position : positions) {
    Json entry = chat_entry(position.sampled, position.token_bytes, as_ids);
    Json& top = entry["top_logprobs"] = Json::array();
    for (size_t i = 0; i < position.top.size(); ++i) {
      top.push_back(chat_entry(position.top[i], position.top_bytes[i], as_ids));
    }
    out.push_back(std::move(entry));
  }
  return out;
}

Json prompt_logprobs_json(const std::vector<PositionLogprobs>& positions, int32_t top) {
  Json out = Json::array();
  for (const PositionLogprobs& position : positions) {
    if (position.sampled.id == kNoToken) {
      out.push_back(nullptr);
      continue;
    }
    const size_t alternatives = std::min(position.top.size(), static_cast<size_t>(top));
    WideObject entry(alternatives + 1);
    const auto add = [&](const TokenLogprob& token, int32_t rank, const std::string& bytes) {
      Json value;
      value["logprob"] = token.logprob;
      value["rank"] = rank;
      value["decoded_token"] = logprob_token_text(token.id, bytes, false);
      entry.add(std::to_string(token.id), std::move(value));
    };
    add(position.sampled, position.rank, position.token_bytes);
    for (size_t i = 0; i < alternatives; ++i) {
      add(position.top[i], static_cast<int32_t>(i) + 1, position.top_bytes[i]);
    }
    out.push_back(entry.take());
  }
  return out;
}

void LegacyLogprobs::push(const PositionLogprobs& position, bool has_value, int64_t offset) {
  positions_.push_back(position);
  has_value_.push_back(has_value);
  offsets_.push_back(offset);
}

void LegacyLogprobs::add_outside_text(const PositionLogprobs& position) {
  push(position, false, characters_);
}

void LegacyLogprobs::add(const PositionLogprobs& position, bool has_value) {
  const std::string& bytes = position.token_bytes;
  // A token that begins inside a character belongs to that character.
  const bool inside = !bytes.empty() && continues_character(bytes.front()) && characters_ > 0;
  push(position, has_value, inside ? characters_ - 1 : characters_);
  characters_ += std::count_if(bytes.begin(), bytes.end(), [](char c) { return !continues_character(c); });
}

Json LegacyLogprobs::take() {
  // Filled before they are put together: inserting into an ordered_json moves what it holds.
  Json tokens = Json::array(), values = Json::array(), tops = Json::array();
  for (size_t i = 0; i < positions_.size(); ++i) {
    const PositionLogprobs& p = positions_[i];
    const std::string text = logprob_token_text(p.sampled.id, p.token_bytes, as_ids_);
    tokens.push_back(text);
    if (!has_value_[i]) {
      values.push_back(nullptr);
      tops.push_back(nullptr);
      continue;
    }
    values.push_back(p.sampled.logprob);
    // Tokens of equal text collide: the likelier one stays.
    WideObject top(p.top.size() + 1);
    for (size_t k = 0; k < p.top.size(); ++k) {
      top.add(logprob_token_text(p.top[k].id, p.top_bytes[k], as_ids_), p.top[k].logprob);
    }
    top.add(text, p.sampled.logprob);
    tops.push_back(top.take());
  }
  Json out;
  out["tokens"] = std::move(tokens);
  out["token_logprobs"] = std::move(values);
  out["top_logprobs"] = std::move(tops);
  out["text_offset"] = offsets_;
  positions_.clear();
  has_value_.clear();
  offsets_.clear();
  return out;
}

}  // namespace omnibus
