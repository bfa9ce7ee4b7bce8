#include "omnibus/client/prompt_maker.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "random_stream.h"

namespace omnibus::client {
namespace {

constexpr int kCorrections = 4;
// Common words: a token each, with the space in front, in nearly every vocabulary.
constexpr std::array kWords = {
    " time",     " people",  " way",      " water", " words",  " man",      " work",      " part",
    " place",    " years",   " name",     " good",  " great",  " same",     " old",       " right",
    " small",    " large",   " next",     " early", " young",  " few",      " public",    " long",
    " little",   " own",     " other",    " new",   " first",  " last",     " house",     " world",
    " area",     " money",   " story",    " fact",  " month",  " lot",      " book",      " eye",
    " job",      " word",    " side",     " kind",  " head",   " far",      " black",     " white",
    " children", " life",    " hand",     " high",  " every",  " country",  " school",    " father",
    " city",     " tree",    " start",    " might", " close",  " night",    " real",      " example",
    " light",    " voice",   " power",    " town",  " fine",   " fire",     " king",      " space",
    " today",    " body",    " music",    " color", " stand",  " question", " fish",      " mark",
    " horse",    " problem", " complete", " room",  " friend", " order",    " red",       " door",
    " sure",     " ship",    " rock",     " group", " often",  " run",      " important", " until",
    " form",     " food",    " keep",     " start"};
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";

// The pieces that texts are made of.
struct Pieces {
  std::vector<std::string> list;
  double tokens_each = 1;
};

std::vector<std::string> words() { return {kWords.begin(), kWords.end()}; }

std::vector<std::string> letters() {
  std::vector<std::string> out;
  for (const char c : kLetters) out.emplace_back(1, c);
  return out;
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& piece : list) text += piece;
  return text;
}

// Words if each is one token; letters if those are; else words, whatever they are.
StatusOr<std::optional<Pieces>> choose_pieces(TokenCounter& counter) {
  OMNIBUS_ASSIGN_OR_RETURN(const auto base, counter.count(" time"));
  if (!base) return std::optional<Pieces>();
  Pieces pieces{words()};
  for (const auto& list : {words(), letters()}) {
    OMNIBUS_ASSIGN_OR_RETURN(const auto once, counter.count(joined(list)));
    OMNIBUS_ASSIGN_OR_RETURN(const auto twice, counter.count(joined(list) + joined(list)));
    const auto added = static_cast<double>(twice.value_or(0) - once.value_or(0));
    const double each = added / static_cast<double>(list.size());
    if (each == 1) return std::optional<Pieces>(Pieces{list, 1});
    if (list.size() == kWords.size()) pieces.tokens_each = std::max(each, 0.1);
  }
  return std::optional<Pieces>(std::move(pieces));
}

Status stopped() { return absl::CancelledError("stopped while the prompts were made"); }

class Maker {
 public:
  Maker(Pieces pieces, TokenCounter& counter, bool counted, uint64_t seed, const std::atomic<bool>& stop)
      : pieces_(std::move(pieces)), counter_(counter), counted_(counted), seed_(seed), stop_(stop) {}

  // A text of `tokens` tokens behind `front`, which is counted with it. Sets `exact`.
  StatusOr<std::string> make(const std::string& front, int64_t tokens, uint64_t stream, bool& exact) {
    if (stop_.load()) return stopped();
    RandomStream random(seed_, stream);
    std::vector<std::string> body;
    grow(body, std::max<int64_t>(1, pieces_for(tokens - tokens_of(front))), random);
    exact = false;
    for (int i = 0; counted_ && i <= kCorrections; ++i) {
      OMNIBUS_ASSIGN_OR_RETURN(const auto count, counter_.count(front + joined(body)));
      if (!count) break;  // it counted the pieces but not this: too long, perhaps
      const int64_t missing = tokens - *count;
      exact = missing == 0;
      if (exact || i == kCorrections) break;
      const int64_t change = std::max<int64_t>(1, pieces_for(std::abs(missing)));
      if (missing > 0) {
        grow(body, change, random);
      } else {
        const auto rest = static_cast<int64_t>(body.size()) - change;
        if (rest < 1 && body.size() == 1) break;  // special tokens alone are more than was asked for
        body.resize(static_cast<size_t>(std::max<int64_t>(1, rest)));
      }
    }
    return front + joined(body);
  }

  void remember(const std::string& front, int64_t tokens) { fronts_[front] = tokens; }

 private:
  int64_t tokens_of(const std::string& front) const {
    const auto found = fronts_.find(front);
    return found == fronts_.end() ? 0 : found->second;
  }
  int64_t pieces_for(int64_t tokens) const {
    return static_cast<int64_t>(static_cast<double>(tokens) / pieces_.tokens_each + 0.5);
  }
  void grow(std::vector<std::string>& body, int64_t count, RandomStream& random) const {
    const auto choices = static_cast<int64_t>(pieces_.list.size());
    for (int64_t i = 0; i < count; ++i) {
      body.push_back(pieces_.list[static_cast<size_t>(random.below(choices))]);
    }
  }

  Pieces pieces_;
  TokenCounter& counter_;
  const bool counted_;
  const uint64_t seed_;
  const std::atomic<bool>& stop_;
  std::map<std::string, int64_t> fronts_;
};

}  // namespace

TokenCounter::TokenCounter(HttpClient* http, std::string model, bool special)
    : http_(http), model_(std::move(model)), special_(special) {}

StatusOr<std::optional<int64_t>> TokenCounter::count(std::string_view text) {
  if (form_ == Form::kNone) return std::optional<int64_t>();
  if (form_ != Form::kUnknown) return ask(text, form_);
  for (const Form form : {Form::kVllm, Form::kLlamaCpp}) {
    // llama.cpp answers vLLM's form with no tokens.
    OMNIBUS_ASSIGN_OR_RETURN(const auto tokens, ask(text, form));
    if (!tokens || (*tokens == 0 && !text.empty())) continue;
    form_ = form;
    return tokens;
  }
  form_ = Form::kNone;
  return std::optional<int64_t>();
}

StatusOr<std::optional<int64_t>> TokenCounter::ask(std::string_view text, Form form) {
  nlohmann::json body;
  body[form == Form::kVllm ? "prompt" : "content"] = text;
  body[form == Form::kVllm ? "add_special_tokens" : "add_special"] = special_;
  if (form == Form::kVllm) body["model"] = model_;
  OMNIBUS_ASSIGN_OR_RETURN(const HttpAnswer answer, http_->post_json("/tokenize", body.dump()));
  if (answer.status != 200) return std::optional<int64_t>();
  const auto parsed = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed.contains("tokens") || !parsed["tokens"].is_array()) {
    return std::optional<int64_t>();
  }
  return std::optional<int64_t>(static_cast<int64_t>(parsed["tokens"].size()));
}

StatusOr<Prompts> make_prompts(const BenchServeConfig& config, const std::vector<PlannedRequest>& plan,
                               TokenCounter& counter, const std::atomic<bool>& stop) {
  if (stop.load()) return stopped();
  OMNIBUS_ASSIGN_OR_RETURN(auto pieces, choose_pieces(counter));
  Prompts out;
  out.counted = pieces.has_value();
  Maker maker(std::move(pieces).value_or(Pieces{words()}), counter, out.counted, config.seed, stop);
  std::vector<std::string> prefixes(static_cast<size_t>(config.num_prefixes));
  bool exact = false;
  if (config.random_prefix_len > 0) {
    for (size_t i = 0; i < prefixes.size(); ++i) {
      OMNIBUS_ASSIGN_OR_RETURN(prefixes[i],
                               maker.make("", config.random_prefix_len, (1ULL << 40) + i, exact));
      maker.remember(prefixes[i], config.random_prefix_len);
    }
  }
  for (size_t i = 0; i < plan.size(); ++i) {
    const std::string& front = prefixes[static_cast<size_t>(plan[i].prefix)];
    OMNIBUS_ASSIGN_OR_RETURN(std::string text, maker.make(front, config.random_prefix_len + plan[i].input_len,
                                                          (1ULL << 41) + i, exact));
    out.texts.push_back(std::move(text));
    out.exact += exact ? 1 : 0;
  }
  return out;
}

}  // namespace omnibus::client
