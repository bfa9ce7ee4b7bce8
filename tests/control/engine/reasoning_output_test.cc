// Law 1 with reasoning: for every cut into tokens and steps, markers as special tokens or as plain text, the
// same reasoning, answer, stop position, finish reason, usage and logprobs. The oracle searches the whole
// text.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "fakes/piece_tokenizer.h"
#include "src/control/engine/sequence_output.h"

namespace omnibus {
namespace {

const std::string kOpen = "<think>";
const std::string kClose = "</think>";

ReasoningSplit think_split(ReasoningStart start) {
  auto format = std::make_shared<ReasoningFormat>();
  format->open = {kOpen};
  format->close = {kClose};
  format->trim = "\n";
  return {format, start};
}

struct Case {
  std::vector<std::string> pieces;  // tokens
  bool specials = false;            // markers are special tokens
  ReasoningStart start = ReasoningStart::kBefore;
  std::vector<std::string> stops;
  bool stop_in_reasoning = false;
  bool include_stop = false;
  bool skip_special_tokens = true;
  int32_t min_tokens = 0;
  bool eos = true;
};

struct Expected {
  std::string reasoning, content;
  FinishReason reason = FinishReason::kStop;
  StopCause cause;
  int32_t tokens = 0, reasoning_tokens = 0;
};

// A letter for each byte: c content, r reasoning, m marker, i dropped within the block, . dropped outside.
std::string letters_of(const std::string& text, ReasoningStart start) {
  std::string out(text.size(), 'c');
  size_t begin = 0;  // of the block's text
  const auto fill = [&](size_t from, size_t to, char c) {
    std::fill(out.begin() + from, out.begin() + to, c);
  };
  if (start == ReasoningStart::kClosed) {
    fill(0, std::min(text.find_first_not_of('\n'), text.size()), '.');
    return out;
  }
  if (start == ReasoningStart::kBefore) {
    const size_t open = text.find(kOpen);
    if (open == std::string::npos) return out;
    if (text.find_first_not_of('\n') == open) fill(0, open, '.');
    begin = open + kOpen.size();
    fill(open, begin, 'm');
  } else {
    const size_t first = std::min(text.find_first_not_of('\n'), text.size());
    if (text.compare(first, kOpen.size(), kOpen) == 0) {
      fill(0, first, 'i');
      begin = first + kOpen.size();
      fill(first, begin, 'm');
    }
  }
  const size_t close = text.find(kClose, begin);
  const size_t end = std::min(close, text.size());
  fill(begin, end, 'r');
  for (size_t i = begin; i < end && text[i] == '\n'; ++i) out[i] = 'i';
  if (close == std::string::npos) return out;
  for (size_t i = end; i > begin && text[i - 1] == '\n'; --i) out[i - 1] = 'i';
  fill(close, close + kClose.size(), 'm');
  fill(close + kClose.size(), std::min(text.find_first_not_of('\n', close + kClose.size()), text.size()),
       '.');
  return out;
}

Expected oracle(const Case& c) {
  std::string text;
  std::vector<int32_t> token_of;  // per byte, from 1
  for (size_t i = 0; i < c.pieces.size(); ++i) {
    text += c.pieces[i];
    token_of.insert(token_of.end(), c.pieces[i].size(), static_cast<int32_t>(i) + 1);
  }
  const std::string letters = letters_of(text, c.start);
  Expected e;
  e.reason = c.eos ? FinishReason::kStop : FinishReason::kLength;
  e.tokens = static_cast<int32_t>(c.pieces.size()) + (c.eos ? 1 : 0);
  std::string run;  // text in which a stop string may lie
  size_t end = text.size();
  for (size_t i = 0; i < text.size() && end == text.size(); ++i) {
    if (letters[i] == 'm') run.clear();
    if (letters[i] != 'c' && letters[i] != 'r') continue;
    std::string& out = letters[i] == 'c' ? e.content : e.reasoning;
    out += text[i];
    if (letters[i] == 'r' && !c.stop_in_reasoning) continue;
    run += text[i];
    const std::string* longest = nullptr;
    for (const auto& stop : c.stops)
      if (run.ends_with(stop) && (longest == nullptr || stop.size() > longest->size())) longest = &stop;
    if (longest == nullptr || token_of[i] <= c.min_tokens) continue;
    if (!c.include_stop) out.resize(out.size() - longest->size());
    e.reason = FinishReason::kStop;
    e.cause = *longest;
    e.tokens = token_of[i];
    end = i + 1;
  }
  for (int32_t t = 1; t <= std::min(e.tokens, static_cast<int32_t>(c.pieces.size())); ++t) {
    bool is_reasoning = false;
    for (size_t i = 0; i < end; ++i)
      is_reasoning |= token_of[i] == t && letters[i] != 'c' && letters[i] != '.';
    e.reasoning_tokens += is_reasoning ? 1 : 0;
  }
  const bool ends_inside = letters.empty() ? c.start == ReasoningStart::kInside
                                           : letters.back() == 'r' || letters.back() == 'i' ||
                                                 (letters.back() == 'm' && !text.ends_with(kClose));
  if (e.tokens > static_cast<int32_t>(c.pieces.size()) && ends_inside) ++e.reasoning_tokens;
  return e;
}

RequestOutput run(const Case& c, const std::vector<size_t>& steps, const Tokenizer& tokenizer,
                  std::shared_ptr<const Tokenizer> shared) {
  SequenceOutputParams params;
  params.prompt_tokens = 5;
  params.sampling.min_tokens = c.min_tokens;
  params.sampling.include_stop_str_in_output = c.include_stop;
  params.sampling.skip_special_tokens = c.skip_special_tokens;
  params.sampling.stop_in_reasoning = c.stop_in_reasoning;
  params.sampling.logprobs = 0;
  params.stops = std::make_shared<StopAutomaton>(c.stops);
  params.reasoning = think_split(c.start);
  params.tokenizer = std::move(shared);
  SequenceOutput sequence(std::move(params));
  std::vector<TokenId> ids;
  for (const auto& piece : c.pieces) ids.push_back(tokenizer.find_token(piece));
  if (c.eos) ids.push_back(tokenizer.spec().eos);
  RequestOutput joined;
  int32_t counted = 0;
  size_t next = 0;
  for (size_t s = 0; next < ids.size() && !sequence.finished(); ++s) {
    SequenceEvent event;
    event.first_index = static_cast<int32_t>(next);
    for (size_t n = std::min(steps[s % steps.size()], ids.size() - next); n > 0; --n, ++next) {
      event.tokens.push_back(ids[next]);
      event.logprobs.push_back({{ids[next], -1.0F}, {}});
    }
    if (next == ids.size()) event.finish_reason = c.eos ? FinishReason::kStop : FinishReason::kLength;
    RequestOutput out = sequence.take(event);
    joined.text += out.text;
    joined.reasoning += out.reasoning;
    joined.token_ids.insert(joined.token_ids.end(), out.token_ids.begin(), out.token_ids.end());
    for (auto& p : out.logprobs) joined.logprobs.push_back(std::move(p));
    counted += static_cast<int32_t>(out.token_ids.size());
    EXPECT_EQ(out.usage.completion_tokens, counted) << "usage is what was delivered";
    joined.finish_reason = out.finish_reason;
    joined.stop_cause = out.stop_cause;
    joined.usage = out.usage;
  }
  EXPECT_TRUE(sequence.finished());
  EXPECT_TRUE(std::equal(joined.token_ids.begin(), joined.token_ids.end(), ids.begin()));
  for (size_t i = 0; i < joined.logprobs.size(); ++i) EXPECT_EQ(joined.logprobs[i].sampled.id, ids[i]);
  return joined;
}

void check(const Case& c, const std::vector<size_t>& steps) {
  fakes::PieceVocabulary vocabulary;
  vocabulary.pieces = c.pieces;
  if (c.specials) vocabulary.specials.insert(vocabulary.specials.end(), {kOpen, kClose});
  const auto tokenizer = fakes::make_piece_tokenizer(vocabulary);
  const Expected want = oracle(c);
  const RequestOutput got = run(c, steps, *tokenizer, tokenizer);
  ASSERT_EQ(got.reasoning, want.reasoning);
  ASSERT_EQ(got.text, want.content);
  ASSERT_EQ(got.finish_reason, want.reason);
  ASSERT_EQ(got.stop_cause, want.cause);
  ASSERT_EQ(got.usage.completion_tokens, want.tokens);
  ASSERT_EQ(got.usage.reasoning_tokens, want.reasoning_tokens);
  // One per token with text; of a cut answer, those whose text begins before the cut.
  const bool cut = std::holds_alternative<std::string>(want.cause);
  if (cut) {
    ASSERT_LE(got.logprobs.size(), static_cast<size_t>(want.tokens));
  } else {
    ASSERT_EQ(got.logprobs.size(), c.pieces.size());
  }
}

std::string describe(const Case& c) {
  return testing::PrintToString(c.pieces) + ", stops " + testing::PrintToString(c.stops);
}

// Every way to join neighbouring pieces into tokens; whole markers stay tokens of their own when they are
// special.
TEST(ReasoningOutput, EverySegmentationAndStepSize) {
  const std::vector<std::string> atoms = {"\n",   "<thi", "nk>", "\n",  "a\n", "\nb",
                                          "</th", "ink>", "\n",  "c\n", "\nd"};
  for (const ReasoningStart start :
       {ReasoningStart::kBefore, ReasoningStart::kInside, ReasoningStart::kClosed}) {
    for (uint32_t mask = 0; mask < 1U << (atoms.size() - 1); ++mask) {
      Case c;
      c.start = start;
      c.stops = {"\n\n", "<"};
      c.stop_in_reasoning = mask % 3 == 0;
      c.include_stop = mask % 5 == 0;
      for (size_t i = 0; i < atoms.size(); ++i) {
        if (i > 0 && (mask >> (i - 1) & 1) == 0) {
          c.pieces.back() += atoms[i];
        } else {
          c.pieces.push_back(atoms[i]);
        }
      }
      for (const size_t k : {1, 3})
        ASSERT_NO_FATAL_FAILURE(check(c, {k})) << describe(c) << ", mask " << mask << ", k " << k;
    }
  }
}

TEST(ReasoningOutput, RandomTexts) {
  const std::vector<std::string> plain = {"<", "thi", "nk>",  "</", "think>", "\n",  "\n\n",
                                          "a", "é",   "STOP", "ST", "OP",     "x y", "😀"};
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    std::mt19937 rng(seed);
    Case c;
    c.specials = rng() % 2 == 0;
    c.start = static_cast<ReasoningStart>(rng() % 3);
    for (size_t n = 1 + rng() % 14; n > 0; --n) {
      const uint32_t pick = rng() % 6;
      c.pieces.push_back(pick == 0 ? kOpen : pick == 1 ? kClose : plain[rng() % plain.size()]);
    }
    if (rng() % 2 == 0) c.stops = {"STOP", "\n\na", "<t"};
    if (rng() % 4 == 0) c.stops.push_back("a");
    c.stop_in_reasoning = rng() % 3 == 0;
    c.include_stop = rng() % 2 == 0;
    c.min_tokens = static_cast<int32_t>(rng() % 2 * (rng() % 8));
    c.eos = rng() % 2 == 0;
    // Special tokens that are no marker at their place are hidden; the oracle knows text only. It does not
    // know the text of EOS.
    if (c.specials) c.skip_special_tokens = c.include_stop = false;
    ASSERT_NO_FATAL_FAILURE(check(c, {1 + rng() % 4, 1 + rng() % 4, 1}))
        << "seed " << seed << ": " << describe(c);
  }
}

// Markers as special tokens that are skipped in text: same answer as with plain text.
TEST(ReasoningOutput, HiddenMarkersSplitLikePlainOnes) {
  for (const bool specials : {false, true}) {
    for (const size_t k : {1, 2, 9}) {
      Case c;
      c.specials = specials;
      c.pieces = {kOpen, "\n", "hm", kClose, "\n\n", "yes"};
      ASSERT_NO_FATAL_FAILURE(check(c, {k})) << specials << k;
    }
  }
}

// A special token that is no marker where it stands is hidden as ever.
TEST(ReasoningOutput, OtherSpecialTokensStayHidden) {
  Case c;
  c.specials = true;
  c.pieces = {kOpen, "a", "<|im_start|>", kOpen, "b", kClose, "c", kClose, kOpen, "d"};
  fakes::PieceVocabulary vocabulary;
  vocabulary.pieces = c.pieces;
  vocabulary.specials.insert(vocabulary.specials.end(), {kOpen, kClose});
  const auto tokenizer = fakes::make_piece_tokenizer(vocabulary);
  for (const size_t k : {1, 3, 20}) {
    const RequestOutput got = run(c, {k}, *tokenizer, tokenizer);
    EXPECT_EQ(got.reasoning, "ab");
    EXPECT_EQ(got.text, "cd");
    EXPECT_EQ(got.usage.reasoning_tokens, 6);
    EXPECT_EQ(got.usage.completion_tokens, 11);
  }
}

// An unfinished character does not reach over a special token.
TEST(ReasoningOutput, HalfACharacterBeforeAMarker) {
  Case c;
  c.specials = true;
  c.pieces = {kOpen, "\xF0\x9F", kClose, "x"};
  fakes::PieceVocabulary vocabulary;
  vocabulary.pieces = c.pieces;
  vocabulary.specials.insert(vocabulary.specials.end(), {kOpen, kClose});
  const auto tokenizer = fakes::make_piece_tokenizer(vocabulary);
  const RequestOutput got = run(c, {1}, *tokenizer, tokenizer);
  EXPECT_EQ(got.reasoning, "\uFFFD");
  EXPECT_EQ(got.text, "x");
}

TEST(ReasoningOutput, HalfACharacterAtTheEndOfReasoning) {
  for (const bool eos : {true, false}) {
    Case c;
    c.pieces = {kOpen, "a", "\xF0\x9F"};
    c.eos = eos;
    fakes::PieceVocabulary vocabulary;
    vocabulary.pieces = c.pieces;
    const auto tokenizer = fakes::make_piece_tokenizer(vocabulary);
    const RequestOutput got = run(c, {1}, *tokenizer, tokenizer);
    EXPECT_EQ(got.reasoning, "a\uFFFD");
    EXPECT_EQ(got.text, "");
    EXPECT_EQ(got.usage.reasoning_tokens, eos ? 4 : 3);
  }
}

TEST(ReasoningOutput, AbortReleasesNothingUndecided) {
  SequenceOutputParams params;
  params.stops = std::make_shared<StopAutomaton>(std::vector<std::string>{});
  params.reasoning = think_split(ReasoningStart::kInside);
  params.tokenizer = fakes::make_piece_tokenizer({});
  SequenceOutput sequence(std::move(params));
  SequenceEvent event;
  event.tokens = {'a', '<', '/'};
  EXPECT_EQ(sequence.take(event).reasoning, "a");
  SequenceEvent end;
  end.first_index = 3;
  end.finish_reason = FinishReason::kAbort;
  const RequestOutput out = sequence.take(end);
  EXPECT_EQ(out.reasoning, "");
  EXPECT_EQ(out.usage.completion_tokens, 3);
  EXPECT_TRUE(sequence.finished());
}

}  // namespace
}  // namespace omnibus
