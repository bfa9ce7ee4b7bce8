// Variables of one block. Loops, macros and set blocks open a scope of their own; `if` does not.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "ast.h"

namespace omnibus::jinja {

class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> parent) : parent_(std::move(parent)) {}

  void set(Symbol symbol, Value value) {
    if (Value* known = local(symbol)) {
      *known = std::move(value);
      return;
    }
    if (symbols_.size() >= kIndexFrom) {
      if (index_.empty())
        for (size_t i = 0; i < symbols_.size(); ++i) index_.emplace(symbols_[i].first, i);
      index_.emplace(symbol, symbols_.size());
    }
    symbols_.emplace_back(symbol, std::move(value));
  }
  // Here or in a scope around; nullptr when there is none.
  const Value* find(Symbol symbol) {
    for (Scope* scope = this; scope != nullptr; scope = scope->parent_.get())
      if (const Value* value = scope->local(symbol)) return value;
    return nullptr;
  }
  // Makes an unshared scope ready for the next round of a loop.
  void clear() {
    symbols_.clear();
    index_.clear();
  }

 private:
  static constexpr size_t kIndexFrom = 12;

  Value* local(Symbol symbol) {
    if (!index_.empty()) {
      const auto found = index_.find(symbol);
      return found == index_.end() ? nullptr : &symbols_[found->second].second;
    }
    for (auto& [known, value] : symbols_)
      if (known == symbol) return &value;
    return nullptr;
  }

  std::shared_ptr<Scope> parent_;
  std::vector<std::pair<Symbol, Value>> symbols_;
  absl::flat_hash_map<Symbol, size_t> index_;
};

}  // namespace omnibus::jinja
