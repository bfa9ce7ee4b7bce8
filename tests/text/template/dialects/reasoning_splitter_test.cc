// Law 1 for reasoning: whatever a text's pieces are, each byte has the same part. The oracle is plain search
// in the whole text, written without the splitter's ideas (no state, no held text).
#include "omnibus/text/template/reasoning_splitter.h"

#include <random>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

struct Parts {
  std::string content, reasoning;
  // One letter a byte: c content, r reasoning, o opening, x closing, . dropped.
  std::string letters;
  bool operator==(const Parts&) const = default;
};

char letter_of(TextPart part) {
  switch (part) {
    case TextPart::kContent:
      return 'c';
    case TextPart::kReasoning:
      return 'r';
    case TextPart::kOpening:
      return 'o';
    case TextPart::kClosing:
      return 'x';
    default:
      return '.';
  }
}

Parts from_letters(const std::string& text, const std::string& letters) {
  Parts parts;
  parts.letters = letters;
  for (size_t i = 0; i < text.size(); ++i) {
    if (letters[i] == 'c') parts.content += text[i];
    if (letters[i] == 'r') parts.reasoning += text[i];
  }
  return parts;
}

struct Hit {
  size_t at = std::string::npos, size = 0;
};

Hit first_of(const std::string& text, size_t from, const std::vector<std::string>& markers) {
  Hit best;
  for (const auto& marker : markers) {
    const size_t at = text.find(marker, from);
    if (at < best.at) best = {at, marker.size()};
  }
  return best;
}

// The whole text at once: mark the markers first, then trim around them.
Parts oracle(const ReasoningFormat& f, ReasoningStart start, const std::string& text) {
  std::string letters(text.size(), 'c');
  const auto fill = [&](size_t at, size_t n, char c) {
    std::fill_n(letters.begin() + static_cast<long>(at), n, c);
  };
  const auto is_trim = [&](size_t i) { return f.trim.find(text[i]) != std::string::npos; };
  bool inside = start == ReasoningStart::kInside;
  bool may_open = start == ReasoningStart::kBefore || f.repeat;
  size_t at = 0;
  if (inside) {
    size_t i = 0;
    while (i < text.size() && is_trim(i)) ++i;
    for (const auto& marker : f.open)
      if (text.compare(i, marker.size(), marker) == 0) fill(i, marker.size(), 'o');
    if (i < text.size() && letters[i] == 'o') at = letters.find_last_of('o') + 1;
  }
  while (at < text.size()) {
    if (inside) {
      const Hit close = first_of(text, at, f.close);
      fill(at, std::min(close.at, text.size()) - at, 'r');
      if (close.at == std::string::npos) break;
      fill(close.at, close.size, 'x');
      at = close.at + close.size;
      inside = false;
      may_open = f.repeat;
      continue;
    }
    const Hit open = may_open ? first_of(text, at, f.open) : Hit{};
    const Hit drop = first_of(text, at, f.drop);
    if (open.at == std::string::npos && drop.at == std::string::npos) break;
    if (drop.at < open.at) {
      fill(drop.at, drop.size, '.');
      at = drop.at + drop.size;
    } else {
      fill(open.at, open.size, 'o');
      at = open.at + open.size;
      inside = true;
    }
  }
  // Trimming. Behind an opening or closing marker (or the prompt's): up to the next text, over dropped
  // markers.
  bool strip = start != ReasoningStart::kBefore;
  for (size_t i = 0; i < text.size(); ++i) {
    if (letters[i] == 'o' || letters[i] == 'x') strip = true;
    if (letters[i] != 'c' && letters[i] != 'r') continue;
    if (strip && is_trim(i)) {
      letters[i] = '.';
    } else {
      strip = false;
    }
  }
  // Before a closing marker; and before a marker when no text stands before it.
  for (size_t i = 1; i < text.size(); ++i) {
    if (letters[i] != 'x' || letters[i - 1] == 'x') continue;
    for (size_t j = i; j > 0 && letters[j - 1] == 'r' && is_trim(j - 1); --j) letters[j - 1] = '.';
  }
  for (size_t i = 0, begin = 0; i < text.size(); ++i) {
    if (letters[i] == 'c' && !is_trim(i)) break;
    if (letters[i] == 'c') continue;
    fill(begin, i - begin, '.');
    if (letters[i] != '.') break;
    begin = i + 1;
  }
  return from_letters(text, letters);
}

Parts split(const ReasoningSplit& how, const std::string& text, const std::vector<size_t>& cuts) {
  ReasoningSplitter splitter(how);
  std::vector<TextRun> runs;
  size_t from = 0;
  for (const size_t cut : cuts) {
    splitter.feed(std::string_view(text).substr(from, cut - from), runs);
    from = cut;
  }
  splitter.feed(std::string_view(text).substr(from), runs);
  splitter.finish(runs);
  std::string letters;
  for (const TextRun& run : runs) letters.append(run.size, letter_of(run.part));
  EXPECT_EQ(letters.size(), text.size()) << "runs cover the text";
  letters.resize(text.size(), '?');
  return from_letters(text, letters);
}

std::vector<size_t> cuts_of(size_t size, uint64_t mask) {
  std::vector<size_t> cuts;
  for (size_t i = 1; i < size; ++i)
    if ((mask >> (i - 1) & 1) != 0) cuts.push_back(i);
  return cuts;
}

constexpr ReasoningStart kStarts[] = {ReasoningStart::kBefore, ReasoningStart::kInside,
                                      ReasoningStart::kClosed};

class ReasoningLaw1 : public testing::TestWithParam<std::shared_ptr<const Dialect>> {};

// Texts of markers, their beginnings, trimmed characters and words, in any order.
std::string random_text(const ReasoningFormat& f, std::mt19937& rng, size_t words) {
  std::vector<std::string> atoms = {"\n", "\n\n", " ", "a", "b c", "é", "😀", "<", "[", "|", "H"};
  for (const auto* markers : {&f.open, &f.close, &f.drop}) {
    for (const std::string& marker : *markers) {
      atoms.push_back(marker);
      atoms.push_back(marker);
      atoms.push_back(marker.substr(0, 1 + rng() % marker.size()));
      atoms.push_back(marker.substr(rng() % marker.size()));
    }
  }
  std::string text;
  for (size_t i = 0; i < words; ++i) text += atoms[rng() % atoms.size()];
  return text;
}

TEST_P(ReasoningLaw1, RandomTextsInRandomPieces) {
  const auto& format = GetParam()->reasoning;
  for (uint32_t seed = 1; seed <= 1000; ++seed) {
    std::mt19937 rng(seed);
    const std::string text = random_text(*format, rng, 1 + rng() % 12);
    const ReasoningSplit how{format, kStarts[rng() % 3]};
    const Parts want = oracle(*format, how.start, text);
    ASSERT_EQ(split(how, text, {}).letters, want.letters) << "seed " << seed << ": " << text;
    for (int i = 0; i < 5; ++i) {
      std::vector<size_t> cuts;
      const uint32_t rare = 1 + rng() % 8;
      for (size_t at = 1; at < text.size(); ++at)
        if (rng() % rare == 0) cuts.push_back(at);
      ASSERT_EQ(split(how, text, cuts).letters, want.letters) << "seed " << seed << ": " << text;
    }
  }
}

// Markers as whole pieces, and every way to cut 12 pieces.
TEST_P(ReasoningLaw1, EveryCutOfTwelvePieces) {
  const auto& f = *GetParam()->reasoning;
  const std::string& open = f.open.front();
  const std::string& close = f.close.front();
  const std::string end = f.drop.empty() ? "z" : f.drop.back();
  const std::vector<std::string> pieces = {open.substr(0, open.size() / 2),
                                           open.substr(open.size() / 2),
                                           "\n",
                                           "a",
                                           close.substr(0, 1),
                                           "b",
                                           close.substr(0, close.size() - 1),
                                           close.substr(close.size() - 1),
                                           "\n\n",
                                           "c",
                                           end,
                                           "d"};
  std::string text;
  std::vector<size_t> borders;
  for (const auto& piece : pieces) {
    text += piece;
    borders.push_back(text.size());
  }
  for (const ReasoningStart start : kStarts) {
    const Parts want = oracle(f, start, text);
    for (uint64_t mask = 0; mask < 1U << 11; ++mask) {
      std::vector<size_t> cuts;
      for (size_t i = 0; i < 11; ++i)
        if ((mask >> i & 1) != 0) cuts.push_back(borders[i]);
      ASSERT_EQ(split({GetParam()->reasoning, start}, text, cuts).letters, want.letters)
          << text << ", mask " << mask;
    }
  }
}

std::vector<std::shared_ptr<const Dialect>> all_dialects() {
  const auto all = builtin_dialects();
  return {all.begin(), all.end()};
}

INSTANTIATE_TEST_SUITE_P(Dialects, ReasoningLaw1, testing::ValuesIn(all_dialects()),
                         [](const auto& test) { return test.param->name; });

ReasoningSplit think(ReasoningStart start = ReasoningStart::kBefore) {
  auto format = std::make_shared<ReasoningFormat>();
  format->open = {"<think>"};
  format->close = {"</think>"};
  format->trim = "\n";
  return {format, start};
}

TEST(ReasoningSplitter, PlainCases) {
  const auto check = [](const std::string& text, ReasoningStart start, const std::string& reasoning,
                        const std::string& content) {
    for (uint64_t mask = 0; mask < uint64_t{1} << std::min<size_t>(text.size() - 1, 10); ++mask) {
      const Parts got = split(think(start), text, cuts_of(text.size(), mask));
      ASSERT_EQ(got.reasoning, reasoning) << text;
      ASSERT_EQ(got.content, content) << text;
    }
  };
  using S = ReasoningStart;
  check("<think>\nhm\n</think>\n\nyes\n", S::kBefore, "hm", "yes\n");
  check("\n\n<think>a</think>b", S::kBefore, "a", "b");
  check("\n\nno block", S::kBefore, "", "\n\nno block");
  check("so\n<think>a</think>b", S::kBefore, "a", "so\nb");
  check("<think>a</think>b<think>c</think>", S::kBefore, "a", "b<think>c</think>");
  check("<think>not closed\n", S::kBefore, "not closed\n", "");
  check("<think>half</thin", S::kBefore, "half</thin", "");
  check("a</think>b", S::kBefore, "", "a</think>b");
  check("a\n</think>\nb", S::kInside, "a", "b");
  check("<think>\na</think>b", S::kInside, "a", "b");
  check("a<think>b</think>c", S::kInside, "a<think>b", "c");
  check("\n\n<think>a</think>", S::kClosed, "", "<think>a</think>");
}

// A stream shows text as soon as it can be no marker, and no later.
TEST(ReasoningSplitter, HoldsBackNoMoreThanNeeded) {
  ReasoningSplitter splitter(think());
  const auto decided = [&](std::string_view text) {
    std::vector<TextRun> runs;
    splitter.feed(text, runs);
    size_t n = 0;
    for (const TextRun& run : runs) n += run.size;
    return n;
  };
  EXPECT_EQ(decided("<thin"), 0U);
  EXPECT_EQ(decided("k>"), 7U);
  EXPECT_EQ(decided("a"), 1U);
  EXPECT_EQ(decided("b\n"), 1U);
  EXPECT_EQ(decided("c"), 2U);
  EXPECT_EQ(decided("</th"), 0U);
  EXPECT_EQ(decided("e"), 5U);
  EXPECT_EQ(decided("\n</think>"), 9U);
  EXPECT_EQ(decided("<think"), 6U);
}

// Held text must not be looked at again and again: a model that writes line ends for ever costs its length
// once.
TEST(ReasoningSplitter, EndlessTrimmedCharactersAreCheap) {
  ReasoningSplitter splitter(think(ReasoningStart::kInside));
  std::vector<TextRun> runs;
  splitter.feed("a", runs);
  for (int i = 0; i < 1'000'000; ++i) splitter.feed("\n", runs);
  EXPECT_EQ(runs.size(), 1U);
  splitter.finish(runs);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].size, 1'000'001U);
}

}  // namespace
}  // namespace omnibus
