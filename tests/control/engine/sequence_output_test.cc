// Law 1, split invariance: for a text, every segmentation into tokens and every number of tokens per event
// gives the same content, stop position, finish reason, usage and logprobs; each delta is whole UTF-8.
#include "src/control/engine/sequence_output.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "fakes/piece_tokenizer.h"

namespace omnibus {
namespace {

struct Case {
  std::string name;
  std::string text;  // <= 12 bytes: every cut is tried
  std::vector<std::string> stops;
  bool include_stop = false;
  int32_t min_tokens = 0;
  bool eos = true;  // false: the last piece hits max_tokens
};

struct Expected {
  std::string content;
  FinishReason reason = FinishReason::kStop;
  StopCause cause;
  int32_t completion_tokens = 0;
  size_t n_logprobs = 0;
};

// Plain words: the first byte at which some stop string is complete, in a token beyond min_tokens.
Expected oracle(const Case& c, const std::vector<std::string>& pieces, const std::string& all_text) {
  Expected e;
  size_t end = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    for (size_t b = 0; b < pieces[i].size(); ++b) {
      ++end;
      const std::string* longest = nullptr;
      for (const auto& stop : c.stops)
        if (end >= stop.size() && c.text.compare(end - stop.size(), stop.size(), stop) == 0)
          if (longest == nullptr || stop.size() > longest->size()) longest = &stop;
      if (longest == nullptr || static_cast<int32_t>(i) + 1 <= c.min_tokens) continue;
      const size_t cut = c.include_stop ? end : end - longest->size();
      e.content = c.text.substr(0, cut);
      e.cause = *longest;
      e.completion_tokens = static_cast<int32_t>(i) + 1;
      size_t start = 0;
      for (size_t t = 0; t <= i; start += pieces[t++].size())
        if (start < cut) ++e.n_logprobs;
      return e;
    }
  }
  e.content = all_text;
  e.reason = c.eos ? FinishReason::kStop : FinishReason::kLength;
  e.completion_tokens = static_cast<int32_t>(pieces.size()) + (c.eos ? 1 : 0);
  e.n_logprobs = pieces.size();
  return e;
}

bool is_utf8(const std::string& text) {
  std::string bytes = text;
  std::string valid;
  append_valid_utf8(bytes, valid, true);
  return valid == text;
}

std::vector<std::string> all_pieces(const std::string& text) {
  std::vector<std::string> pieces;
  for (size_t i = 0; i < text.size(); ++i)
    for (size_t n = 2; i + n <= text.size(); ++n) pieces.push_back(text.substr(i, n));
  return pieces;
}

struct Fixture {
  Fixture(const Case& c, const std::vector<std::string>& pieces)
      : test_case(c), stops(std::make_shared<StopAutomaton>(c.stops)) {
    fakes::PieceVocabulary vocabulary;
    vocabulary.pieces = pieces;
    tokenizer = fakes::make_piece_tokenizer(vocabulary);
  }

  SequenceOutput sequence() const {
    SequenceOutputParams params;
    params.parent_id = 9;
    params.prompt_tokens = 5;
    params.sampling.min_tokens = test_case.min_tokens;
    params.sampling.include_stop_str_in_output = test_case.include_stop;
    params.sampling.logprobs = 1;
    params.stops = stops;
    params.tokenizer = tokenizer;
    return SequenceOutput(std::move(params));
  }

  // Joined output; checks what must hold of each delta.
  RequestOutput run(const std::vector<TokenId>& ids, const std::vector<size_t>& steps) const {
    SequenceOutput sequence = this->sequence();
    RequestOutput joined;
    size_t next = 0;
    for (size_t s = 0; next < ids.size() && !sequence.finished(); ++s) {
      const size_t n = std::min(steps[s % steps.size()], ids.size() - next);
      SequenceEvent event;
      event.first_index = static_cast<int32_t>(next);
      for (size_t i = next; i < next + n; ++i) {
        event.tokens.push_back(ids[i]);
        event.logprobs.push_back({{ids[i], -0.5F * static_cast<float>(i)}, {{ids[i], -1}}});
      }
      next += n;
      if (next == ids.size())
        event.finish_reason = test_case.eos ? FinishReason::kStop : FinishReason::kLength;
      RequestOutput out = sequence.take(event);
      EXPECT_TRUE(is_utf8(out.text)) << testing::PrintToString(out.text);
      EXPECT_EQ(out.finish_reason.has_value(), sequence.finished());
      joined.text += out.text;
      joined.token_ids.insert(joined.token_ids.end(), out.token_ids.begin(), out.token_ids.end());
      for (auto& p : out.logprobs) joined.logprobs.push_back(std::move(p));
      joined.finish_reason = out.finish_reason;
      joined.stop_cause = out.stop_cause;
      joined.usage = out.usage;
    }
    EXPECT_TRUE(sequence.finished());
    return joined;
  }

  void check(const std::vector<std::string>& pieces, const std::vector<size_t>& steps) const {
    std::vector<TokenId> ids;
    for (const auto& piece : pieces) ids.push_back(tokenizer->find_token(piece));
    const std::string all_text = tokenizer->decode(ids, true);
    if (test_case.eos) ids.push_back(tokenizer->spec().eos);
    const Expected want = oracle(test_case, pieces, all_text);
    const RequestOutput got = run(ids, steps);
    ASSERT_EQ(got.text, want.content);
    ASSERT_EQ(got.finish_reason, want.reason);
    ASSERT_EQ(got.stop_cause, want.cause);
    ASSERT_EQ(got.usage.completion_tokens, want.completion_tokens);
    ASSERT_EQ(got.usage.prompt_tokens, 5);
    ASSERT_EQ(got.token_ids.size(), static_cast<size_t>(want.completion_tokens));
    ASSERT_EQ(got.logprobs.size(), want.n_logprobs);
    for (size_t i = 0; i < got.logprobs.size(); ++i) {
      ASSERT_EQ(got.logprobs[i].sampled.id, ids[i]);
      ASSERT_EQ(got.logprobs[i].sampled.logprob, -0.5F * static_cast<float>(i));
      ASSERT_EQ(got.logprobs[i].token_bytes, pieces[i]);
      ASSERT_EQ(got.logprobs[i].top_bytes.size(), 1U);
    }
  }

  Case test_case;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const StopAutomaton> stops;
};

std::vector<std::string> cut(const std::string& text, uint64_t mask) {
  std::vector<std::string> pieces(1);
  for (size_t i = 0; i < text.size(); ++i) {
    pieces.back() += text[i];
    if (i + 1 < text.size() && (mask >> i & 1) != 0) pieces.emplace_back();
  }
  return pieces;
}

class SplitInvariance : public testing::TestWithParam<Case> {};

TEST_P(SplitInvariance, EverySegmentationAndEveryStepSize) {
  const Case& base = GetParam();
  ASSERT_LE(base.text.size(), 12U);
  for (bool eos : {true, false}) {
    for (bool include : {false, true}) {
      Case c = base;
      c.eos = eos;
      c.include_stop = include;
      const Fixture fixture(c, all_pieces(c.text));
      for (uint64_t mask = 0; mask < uint64_t{1} << (c.text.size() - 1); ++mask) {
        const auto pieces = cut(c.text, mask);
        for (size_t k : {1, 2, 3, 12}) {
          ASSERT_NO_FATAL_FAILURE(fixture.check(pieces, {k}))
              << base.name << ", mask " << mask << ", k " << k << ", eos " << eos << ", include " << include;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Texts, SplitInvariance,
    testing::Values(Case{"plain", "aébSTOPcdef", {"STOP"}}, Case{"false_starts", "ababababac__", {"abac"}},
                    Case{"first_complete_wins", "xxabcdyyzzww", {"bcd", "c", "abcdy"}},
                    Case{"longest_at_one_byte", "xxabcdyyzzww", {"cd", "abcd", "d"}},
                    Case{"held_text_is_flushed", "hello worlST", {"STOP", "TOP"}},
                    Case{"emoji", "👍STOP👍", {"STOP👍"}}, Case{"no_stops", "né 👍x€", {}},
                    Case{"unicode_stop", "é€é€x", {"€é", "é€x"}},
                    Case{"half_character_at_end", "abc\xF0\x9F\x91", {"bX", "c\xF0\x9F\x91\x8D"}},
                    Case{"broken_bytes", "a\xFF\xC3(\xE2\x82z\x80", {"q"}},
                    Case{"stop_is_all", "STOP", {"STOP"}},
                    Case{"min_tokens", "abSTOPabSTOP", {"STOP", "b"}, false, 3},
                    Case{"min_tokens_beyond", "aSTOPbSTOPc", {"STOP"}, false, 20}),
    [](const auto& test) { return test.param.name; });

// Longer texts: random segmentations and step patterns; the seed is printed.
TEST(SplitInvarianceRandom, LongTextsInRandomPieces) {
  const std::vector<std::string> words = {"STOP", "ST", "O", "P", "é", "€", "👍", " ", "\n\n", "abc", "STO"};
  for (uint32_t seed = 1; seed <= 1000; ++seed) {
    std::mt19937 rng(seed);
    Case c;
    c.name = "random";
    while (c.text.size() < 60) c.text += words[rng() % words.size()];
    c.stops = {"STOP👍", "\n\nST", "€é€", "PSTOPS"};
    c.eos = rng() % 2 == 0;
    c.include_stop = rng() % 2 == 0;
    c.min_tokens = static_cast<int32_t>(rng() % 3 * 5);
    const uint64_t mask = (uint64_t{rng()} << 32 | rng()) & (uint64_t{rng()} << 32 | rng());
    const auto pieces = cut(c.text, mask);
    const Fixture fixture(c, pieces);
    ASSERT_NO_FATAL_FAILURE(fixture.check(pieces, {1 + rng() % 4, 1 + rng() % 4, 1})) << "seed " << seed;
  }
}

SequenceOutput simple_sequence(SamplingParams sampling, std::shared_ptr<const Tokenizer> tokenizer) {
  SequenceOutputParams params;
  params.prompt_tokens = 2;
  params.stops = std::make_shared<StopAutomaton>(sampling.stop);
  params.sampling = std::move(sampling);
  params.tokenizer = std::move(tokenizer);
  return SequenceOutput(std::move(params));
}

SequenceEvent event_of(int32_t first, std::vector<TokenId> tokens) {
  SequenceEvent event;
  event.first_index = first;
  event.tokens = std::move(tokens);
  return event;
}

// Law 7 for the stop matcher: twice the text costs twice the steps, and no choice of stop strings makes a
// byte cost more than two (a state gained for each byte, and each failure link loses one).
TEST(StopMatcherCost, TwoStepsAByteAtMost) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 rng(seed);
    const size_t letters = 1 + rng() % 3;
    const auto random_text = [&](size_t size) {
      std::string text;
      while (text.size() < size) text += static_cast<char>('a' + rng() % letters);
      return text;
    };
    std::vector<std::string> stops;
    for (size_t i = 0; i < 1 + rng() % 64; ++i) stops.push_back(random_text(1 + rng() % 256) + "!");
    const auto automaton = std::make_shared<StopAutomaton>(stops);
    uint64_t steps[2];
    for (const size_t doubled : {0U, 1U}) {
      StopMatcher matcher(automaton);
      const size_t size = size_t{1000} << doubled;
      for (size_t fed = 0; fed < size; fed += 50) ASSERT_FALSE(matcher.feed(random_text(50), true));
      steps[doubled] = matcher.steps();
      ASSERT_GE(steps[doubled], size) << "seed " << seed;
      ASSERT_LE(steps[doubled], 2 * size) << "seed " << seed;
    }
    ASSERT_LE(static_cast<double>(steps[1]), 2.6 * static_cast<double>(steps[0])) << "seed " << seed;
  }
}

// Law 7 for what is held back: a bounded tail, so that no token costs more for coming late. At any time all
// but the beginning of a stop string and of a character has been shown.
TEST(HoldBack, IsNeverLongerThanAStopStringAndACharacter) {
  const std::vector<std::string> words = {"STOP",     "S",    "é",    "€",  "👍",
                                          "\xF0\x9F", "\xC3", "\x80", "ab", "aab"};
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 rng(seed);
    Case c;
    c.stops = {"STOP!", "aaaaaaaaab!", "é€👍!"};
    size_t longest = 0;
    for (const auto& stop : c.stops) longest = std::max(longest, stop.size());
    const Fixture fixture(c, words);
    SequenceOutput sequence = fixture.sequence();
    std::string all, shown;
    for (int32_t i = 0; i < 400; ++i) {
      const std::string& word = words[rng() % words.size()];
      SequenceEvent event;
      event.first_index = i;
      event.tokens.push_back(fixture.tokenizer->find_token(word));
      event.logprobs.push_back({{event.tokens[0], -1}, {{event.tokens[0], -1}}});
      all += word;
      shown += sequence.take(event).text;
      std::string bytes = all, certain;
      append_valid_utf8(bytes, certain, false);
      ASSERT_TRUE(certain.starts_with(shown)) << "seed " << seed;
      ASSERT_LT(certain.size() - shown.size(), longest) << "seed " << seed << ", token " << i;
      ASSERT_LT(bytes.size(), 4U) << "seed " << seed;
    }
  }
}

// A stream shows text as soon as it cannot become a stop string, and no later.
TEST(SequenceOutput, HoldsBackNoMoreThanNeeded) {
  const auto tokenizer = fakes::make_piece_tokenizer({});
  SamplingParams sampling;
  sampling.stop = {"abc"};
  SequenceOutput sequence = simple_sequence(sampling, tokenizer);
  std::vector<std::string> deltas;
  const std::string text = "xababx";
  for (size_t i = 0; i < text.size(); ++i)
    deltas.push_back(sequence.take(event_of(static_cast<int32_t>(i), {text[i]})).text);
  EXPECT_EQ(deltas, (std::vector<std::string>{"x", "", "", "ab", "", "abx"}));
}

TEST(SequenceOutput, StopStringBeforeMinTokensIsShownAtOnce) {
  SamplingParams sampling;
  sampling.stop = {"ab"};
  sampling.min_tokens = 9;
  SequenceOutput sequence = simple_sequence(sampling, fakes::make_piece_tokenizer({}));
  EXPECT_EQ(sequence.take(event_of(0, {'a'})).text, "");
  EXPECT_EQ(sequence.take(event_of(1, {'b'})).text, "ab");
}

TEST(SequenceOutput, StopTokenTextIsHiddenUnlessIncluded) {
  const auto tokenizer = fakes::make_piece_tokenizer({});
  for (bool include : {false, true}) {
    SamplingParams sampling;
    sampling.include_stop_str_in_output = include;
    sampling.logprobs = 0;
    SequenceOutput sequence = simple_sequence(sampling, tokenizer);
    SequenceEvent event = event_of(0, {'h', 'i', '!'});
    for (TokenId id : event.tokens) event.logprobs.push_back({{id, -1}, {}});
    event.finish_reason = FinishReason::kStop;
    event.stop_cause = TokenId{'!'};
    const RequestOutput out = sequence.take(event);
    EXPECT_EQ(out.text, include ? "hi!" : "hi");
    EXPECT_EQ(out.logprobs.size(), include ? 3U : 2U);
    EXPECT_EQ(out.usage.completion_tokens, 3);
    EXPECT_EQ(out.stop_cause, StopCause(TokenId{'!'}));
  }
}

TEST(SequenceOutput, StopStringOnTheLastAllowedTokenIsAStop) {
  SamplingParams sampling;
  sampling.stop = {"c"};
  SequenceOutput sequence = simple_sequence(sampling, fakes::make_piece_tokenizer({}));
  SequenceEvent event = event_of(0, {'a', 'b', 'c'});
  event.finish_reason = FinishReason::kLength;
  const RequestOutput out = sequence.take(event);
  EXPECT_EQ(out.finish_reason, FinishReason::kStop);
  EXPECT_EQ(out.text, "ab");
}

TEST(SequenceOutput, PromptLogprobsComeOnceWithAnEmptyFirstEntry) {
  SamplingParams sampling;
  sampling.prompt_logprobs = 1;
  SequenceOutput sequence = simple_sequence(sampling, fakes::make_piece_tokenizer({}));
  SequenceEvent event = event_of(0, {'a'});
  event.prompt_logprobs.push_back({{'q', -2}, {{'q', -2}}});
  const RequestOutput first = sequence.take(event);
  ASSERT_EQ(first.prompt_logprobs.size(), 2U);
  EXPECT_EQ(first.prompt_logprobs[0].sampled.id, kNoToken);
  EXPECT_EQ(first.prompt_logprobs[1].token_bytes, "q");
  EXPECT_TRUE(sequence.take(event_of(1, {'b'})).prompt_logprobs.empty());
}

TEST(SequenceOutput, ErrorCarriesItsStatus) {
  SequenceOutput sequence = simple_sequence({}, fakes::make_piece_tokenizer({}));
  SequenceEvent event = event_of(0, {});
  event.finish_reason = FinishReason::kError;
  event.status = absl::InternalError("nan");
  const RequestOutput out = sequence.take(event);
  EXPECT_TRUE(sequence.finished());
  EXPECT_EQ(out.status, absl::InternalError("nan"));
}

}  // namespace
}  // namespace omnibus
