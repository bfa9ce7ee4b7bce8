// TokenBytes: what each token decodes to, in one block of memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/common/ids.h"

namespace omnibus {

class TokenBytes {
 public:
  // Tokens are added in the order of their ids. Views stay valid once all are added.
  void add(std::string_view bytes) {
    bytes_.append(bytes);
    ends_.push_back(bytes_.size());
  }
  // Empty for an id outside the vocabulary.
  std::string_view operator[](TokenId id) const {
    if (id < 0 || static_cast<size_t>(id) >= ends_.size()) return {};
    const auto i = static_cast<size_t>(id);
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

}  // namespace omnibus
