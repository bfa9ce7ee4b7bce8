#include "stop_matcher.h"

#include <deque>
#include <utility>

namespace omnibus {

StopAutomaton::StopAutomaton(std::vector<std::string> stops) : stops_(std::move(stops)), nodes_(1) {
  for (size_t i = 0; i < stops_.size(); ++i) insert(static_cast<int32_t>(i));
  link();
}

void StopAutomaton::insert(int32_t index) {
  size_t node = kRoot;
  size_t depth = 0;
  for (char c : stops_[static_cast<size_t>(index)]) {
    const auto [it, is_new] =
        nodes_[node].children.emplace(static_cast<unsigned char>(c), static_cast<int32_t>(nodes_.size()));
    node = static_cast<size_t>(it->second);
    if (is_new) nodes_.emplace_back();
    nodes_[node].held = ++depth;
  }
  if (nodes_[node].match < 0) nodes_[node].match = index;
}

// Breadth first, so that the shorter suffix is linked before what falls back to it.
void StopAutomaton::link() {
  std::deque<int32_t> order = {kRoot};
  while (!order.empty()) {
    const int32_t parent = order.front();
    order.pop_front();
    const auto children = nodes_[static_cast<size_t>(parent)].children;
    for (const auto& [byte, child] : children) {
      Node& node = nodes_[static_cast<size_t>(child)];
      node.fail = parent == kRoot ? kRoot : next(nodes_[static_cast<size_t>(parent)].fail, byte);
      const Node& shorter = nodes_[static_cast<size_t>(node.fail)];
      if (node.match < 0) node.match = shorter.match;
      // A complete stop string that no other one continues is no prefix any more.
      if (node.children.empty()) node.held = shorter.held;
      order.push_back(child);
    }
  }
}

int32_t StopAutomaton::next(int32_t state, unsigned char byte, uint64_t* steps) const {
  while (true) {
    if (steps != nullptr) ++*steps;
    const Node& node = nodes_[static_cast<size_t>(state)];
    if (const auto it = node.children.find(byte); it != node.children.end()) return it->second;
    if (state == kRoot) return kRoot;
    state = node.fail;
  }
}

std::optional<StopMatcher::Match> StopMatcher::feed(std::string_view piece, bool enabled) {
  for (size_t i = 0; i < piece.size(); ++i) {
    state_ = automaton_->next(state_, static_cast<unsigned char>(piece[i]), &steps_);
    const int32_t index = automaton_->match(state_);
    if (enabled && index >= 0) return Match{i + 1, index};
  }
  return std::nullopt;
}

}  // namespace omnibus
