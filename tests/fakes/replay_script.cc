#include "fakes/replay_script.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <nlohmann/json.hpp>

#include "omnibus/base/common/rng.h"
#include "omnibus/text/template/chat_template.h"

#include "fakes/piece_tokenizer.h"

namespace omnibus::fakes {
namespace {

using Json = nlohmann::ordered_json;

// A behaviour whose output is still bytes: ids are known once the vocabulary is.
struct RawBehaviour {
  ReplayBehaviour behaviour;
  std::vector<std::string> pieces;
  bool by_ids = false;
};

Status wrong(const std::string& what) { return absl::InvalidArgumentError(what); }

StatusOr<std::string> bytes_of_hex(const std::string& hex) {
  if (hex.size() % 2 != 0) return wrong("hex: odd number of digits");
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    if (error != std::errc() || end != hex.data() + i + 2) return wrong("hex: not a digit");
    out += static_cast<char>(value);
  }
  return out;
}

std::vector<std::string> cut_at_random(const std::string& text, uint64_t seed) {
  std::vector<std::string> pieces;
  for (size_t at = 0, n = 0; at < text.size(); ++n) {
    const size_t size = 1 + splitmix64(seed, n) % 8;
    pieces.push_back(text.substr(at, size));
    at += size;
  }
  return pieces;
}

Status read_output(const Json& line, RawBehaviour& raw) {
  if (line.contains("tokens")) {
    raw.by_ids = true;
    for (const Json& id : line["tokens"]) raw.behaviour.tokens.push_back(id.get<TokenId>());
  } else if (line.contains("text")) {
    raw.pieces = cut_at_random(line["text"].get<std::string>(), line.value("seed", uint64_t{0}));
  } else {
    for (const Json& piece : line["pieces"]) {
      if (piece.is_string()) {
        raw.pieces.push_back(piece.get<std::string>());
      } else {
        OMNIBUS_ASSIGN_OR_RETURN(std::string bytes, bytes_of_hex(piece.value("hex", std::string())));
        raw.pieces.push_back(std::move(bytes));
      }
      if (raw.pieces.back().empty()) return wrong("pieces: an empty piece");
    }
  }
  return {};
}

void read_rows(const Json& rows, ReplayBehaviour& behaviour) {
  for (const Json& row : rows) {
    auto& out = behaviour.rows.emplace_back();
    if (row.is_null()) continue;
    out.emplace();
    for (const auto& [id, logit] : row.items()) out->emplace_back(std::stoi(id), logit.get<float>());
  }
}

Status read_fault(const Json& fault, ReplayBehaviour& behaviour) {
  const std::string kind = fault.value("kind", std::string());
  const std::vector<std::pair<std::string, ReplayFault>> kinds = {{"crash", ReplayFault::kCrash},
                                                                  {"stall", ReplayFault::kStall},
                                                                  {"nan", ReplayFault::kNan},
                                                                  {"twice", ReplayFault::kTwice}};
  const auto it = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == kind; });
  if (it == kinds.end()) return wrong("fault: unknown kind '" + kind + "'");
  behaviour.fault = it->second;
  behaviour.fault_at = fault.value("at", size_t{0});
  return {};
}

StatusOr<RawBehaviour> read_behaviour(const Json& line) {
  RawBehaviour raw;
  OMNIBUS_RETURN_IF_ERROR(read_output(line, raw));
  ReplayBehaviour& b = raw.behaviour;
  if (line.contains("when")) b.when = line["when"].get<std::string>();
  b.eos = line.value("eos", true);
  b.delay_ms = line.value("delay_ms", int64_t{0});
  if (line.contains("k")) {
    b.k = line["k"].is_array() ? line["k"].get<std::vector<int32_t>>()
                               : std::vector<int32_t>{line["k"].get<int32_t>()};
    if (b.k.empty() || std::any_of(b.k.begin(), b.k.end(), [](int32_t k) { return k < 1; })) {
      return wrong("k: must be at least 1");
    }
  }
  if (line.contains("rows")) read_rows(line["rows"], b);
  if (line.contains("fault")) OMNIBUS_RETURN_IF_ERROR(read_fault(line["fault"], b));
  if (!b.eos && raw.pieces.empty() && b.tokens.empty()) return wrong("eos: false needs an output");
  return raw;
}

SamplingDefaults read_sampling(const Json& values) {
  SamplingDefaults defaults;
  const auto take = [&](const char* name, auto& value) {
    if (values.contains(name)) value = values[name].get<typename std::decay_t<decltype(value)>::value_type>();
  };
  take("temperature", defaults.temperature);
  take("top_p", defaults.top_p);
  take("min_p", defaults.min_p);
  take("repetition_penalty", defaults.repetition_penalty);
  take("top_k", defaults.top_k);
  return defaults;
}

void read_header(const Json& line, ReplayScript& script, PieceVocabulary& vocabulary) {
  if (line.contains("specials")) vocabulary.specials = line["specials"].get<std::vector<std::string>>();
  vocabulary.eos = line.value("eos", vocabulary.eos);
  vocabulary.bos = line.value("bos", vocabulary.bos);
  const auto& specials = vocabulary.specials;
  std::erase_if(vocabulary.end_of_generation, [&](const std::string& text) {
    return std::find(specials.begin(), specials.end(), text) == specials.end();
  });
  script.chat_template = line.value("template", script.chat_template);
  script.max_model_len = line.value("max_model_len", script.max_model_len);
  script.num_blocks = line.value("num_blocks", script.num_blocks);
  if (line.contains("sampling")) script.sampling = read_sampling(line["sampling"]);
}

// Ids of a byte, a special token or a piece, by their bytes.
TokenId id_of(const Tokenizer& tokenizer, const std::string& bytes) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.token_bytes(id) == bytes) return id;
  }
  return kNoToken;
}

Status check_ids(const ReplayBehaviour& behaviour, int32_t vocab_size) {
  const auto inside = [&](TokenId id) { return id >= 0 && id < vocab_size; };
  for (const TokenId id : behaviour.tokens) {
    if (!inside(id)) return wrong("tokens: no such id " + std::to_string(id));
  }
  for (const auto& row : behaviour.rows) {
    if (!row) continue;
    for (const auto& [id, logit] : *row) {
      if (!inside(id)) return wrong("rows: no such id " + std::to_string(id));
    }
  }
  return {};
}

StatusOr<ReplayScript> parse(const std::string& text) {
  ReplayScript script;
  script.chat_template = kChatMlTemplate;
  PieceVocabulary vocabulary;
  std::vector<RawBehaviour> raws;
  std::istringstream in(text);
  int number = 0;
  bool first = true;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const std::string place = "script line " + std::to_string(number) + ": ";
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return wrong(place + "not a JSON object");
    const bool output = json.contains("pieces") || json.contains("text") || json.contains("tokens");
    if (!output && !first) return wrong(place + "none of pieces, text, tokens");
    first = false;
    if (!output) {
      read_header(json, script, vocabulary);
      continue;
    }
    auto raw = read_behaviour(json);
    if (!raw.ok()) return wrong(place + status_message(raw.status()));
    vocabulary.pieces.insert(vocabulary.pieces.end(), raw->pieces.begin(), raw->pieces.end());
    raws.push_back(*std::move(raw));
  }
  vocabulary.chat_template = script.chat_template;
  script.tokenizer = make_piece_tokenizer(vocabulary);
  for (RawBehaviour& raw : raws) {
    for (const std::string& piece : raw.pieces) {
      raw.behaviour.tokens.push_back(id_of(*script.tokenizer, piece));
    }
    OMNIBUS_RETURN_IF_ERROR(check_ids(raw.behaviour, script.tokenizer->vocab_size()));
    script.behaviours.push_back(std::move(raw.behaviour));
  }
  return script;
}

}  // namespace

const ReplayBehaviour* ReplayScript::find(const std::string& prompt) const {
  for (const ReplayBehaviour& behaviour : behaviours) {
    if (!behaviour.when || prompt.find(*behaviour.when) != std::string::npos) return &behaviour;
  }
  return nullptr;
}

StatusOr<ReplayScript> parse_replay_script(const std::string& text) {
  try {
    return parse(text);
  } catch (const std::exception& error) {  // a value of the wrong type
    return wrong(std::string("script: ") + error.what());
  }
}

}  // namespace omnibus::fakes
