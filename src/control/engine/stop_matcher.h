// Stop strings over a stream of text (Aho and Corasick, "Efficient string matching", CACM 1975). Judged byte
// by byte, so the result does not depend on how the text is cut: the stop string that is complete first wins;
// of several complete at the same byte, the longest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace omnibus {

// The automaton of a set of stop strings; immutable, shared by the choices of a request.
class StopAutomaton {
 public:
  // Strings must not be empty.
  explicit StopAutomaton(std::vector<std::string> stops);

  const std::vector<std::string>& stops() const { return stops_; }
  static constexpr int32_t kRoot = 0;
  // `steps`, if given, grows by the states that were looked at.
  int32_t next(int32_t state, unsigned char byte, uint64_t* steps = nullptr) const;
  // Index of the longest stop string that ends here; -1: none.
  int32_t match(int32_t state) const { return nodes_[static_cast<size_t>(state)].match; }
  // Bytes at the end of the text that are a proper prefix of a stop string.
  size_t held(int32_t state) const { return nodes_[static_cast<size_t>(state)].held; }

 private:
  struct Node {
    std::map<unsigned char, int32_t> children;
    int32_t fail = kRoot;
    int32_t match = -1;
    size_t held = 0;
  };
  void insert(int32_t index);
  void link();

  std::vector<std::string> stops_;
  std::vector<Node> nodes_;
};

// One per sequence.
class StopMatcher {
 public:
  explicit StopMatcher(std::shared_ptr<const StopAutomaton> automaton) : automaton_(std::move(automaton)) {}

  struct Match {
    size_t end = 0;     // offset in the piece, behind the last byte of the stop string
    int32_t index = 0;  // which stop string
  };
  // Reads one piece of text up to the first match. While not `enabled` (min_tokens), complete stop strings
  // count as text; a stop string that began before may still be completed later.
  std::optional<Match> feed(std::string_view piece, bool enabled);
  // What was fed so far is no beginning of a stop string.
  void reset() { state_ = StopAutomaton::kRoot; }
  // Bytes at the end of what was fed that must not be shown yet.
  size_t held() const { return automaton_->held(state_); }
  const std::string& stop(int32_t index) const { return automaton_->stops()[static_cast<size_t>(index)]; }
  // States looked at so far: at most two a byte, whatever the stop strings are.
  uint64_t steps() const { return steps_; }

 private:
  std::shared_ptr<const StopAutomaton> automaton_;
  int32_t state_ = StopAutomaton::kRoot;
  uint64_t steps_ = 0;
};

}  // namespace omnibus
