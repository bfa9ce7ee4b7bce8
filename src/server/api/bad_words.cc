#include "bad_words.h"

#include <string_view>
#include <utility>

namespace omnibus {

std::vector<std::vector<TokenId>> bad_word_sequences(const Tokenizer& tokenizer,
                                                     const std::vector<std::string>& words) {
  std::vector<std::vector<TokenId>> sequences;
  for (const std::string& word : words) {
    const size_t start = word.find_first_not_of(" \t\n\r\f\v");
    const std::string bare = start == std::string::npos ? word : word.substr(start);
    std::vector<TokenId> plain = tokenizer.encode(bare, /*trusted=*/true);
    std::vector<TokenId> spaced = tokenizer.encode(" " + bare, /*trusted=*/true);
    const bool other = !plain.empty() && plain.size() == spaced.size() && plain.front() != spaced.front();
    sequences.push_back(std::move(plain));
    if (other) sequences.push_back(std::move(spaced));
  }
  return sequences;
}

}  // namespace omnibus
