#include "omnibus/client/answer_event.h"

#include <array>
#include <limits>
#include <vector>

#include <nlohmann/json.hpp>

namespace omnibus::client {
namespace {

constexpr size_t kMaxDepth = 512;
constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();  // of one request

// The path of keys to the present value, with arrays as "*": choices * delta content.
class EventReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit EventReader(AnswerEvent& event) : event_(event) {}

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return scalar(); }
  bool number_integer(int64_t value) override { return number(value); }
  bool number_unsigned(uint64_t value) override {
    const auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return number(static_cast<int64_t>(std::min(value, most)));
  }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return scalar(); }
  bool binary(binary_t& /*value*/) override { return false; }

  bool string(std::string& value) override {
    if (at_error()) {
      event_.has_error = true;
      if (path_.size() == 1 || path_.back() == "message") event_.error = value;
    } else if (in_choice() && path_.size() == 3 && path_[2] == "finish_reason") {
      if (!event_.finished) event_.finish_reason = value;
      event_.finished = true;
    } else if (is_output() && !value.empty()) {
      event_.has_output = true;
    }
    return true;
  }

  bool start_object(size_t /*size*/) override {
    if (at_error()) event_.has_error = true;
    path_.emplace_back();
    return path_.size() <= kMaxDepth;
  }
  bool key(std::string& name) override {
    path_.back() = name;
    return true;
  }
  bool end_object() override {
    path_.pop_back();
    return true;
  }
  bool start_array(size_t /*size*/) override {
    if (path_.empty()) return false;  // an answer is an object
    path_.emplace_back("*");
    return path_.size() <= kMaxDepth;
  }
  bool end_array() override {
    path_.pop_back();
    return true;
  }
  bool parse_error(size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*e*/) override {
    return false;
  }

 private:
  bool at_error() const { return !path_.empty() && path_[0] == "error"; }
  bool in_choice() const { return path_.size() >= 3 && path_[0] == "choices" && path_[1] == "*"; }

  // choices * text | choices * {delta, message} {content, reasoning, reasoning_content, tool_calls ...}
  bool is_output() const {
    if (!in_choice()) return false;
    if (path_.size() == 3) return path_[2] == "text";
    if (path_[2] != "delta" && path_[2] != "message") return false;
    const std::string& field = path_[3];
    if (field == "tool_calls") return true;
    return path_.size() == 4 && (field == "content" || field == "reasoning" || field == "reasoning_content");
  }

  bool scalar() {
    if (path_.empty()) return false;
    if (at_error()) event_.has_error = true;
    return true;
  }

  bool number(int64_t value) {
    if (value < 0 || value > kMostTokens) return scalar();  // no count of tokens
    if (path_.size() == 2 && path_[0] == "usage") {
      if (path_[1] == "prompt_tokens") event_.prompt_tokens = value;
      if (path_[1] == "completion_tokens") event_.completion_tokens = value;
    } else if (path_.size() == 3 && path_[0] == "usage" && path_[1] == "prompt_tokens_details" &&
               path_[2] == "cached_tokens") {
      event_.cached_tokens = value;
    }
    return scalar();
  }

  AnswerEvent& event_;
  std::vector<std::string> path_;
};

}  // namespace

std::optional<AnswerEvent> read_answer_event(std::string_view json) {
  AnswerEvent event;
  const size_t start = json.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || json[start] != '{') return std::nullopt;
  EventReader reader(event);
  if (!nlohmann::json::sax_parse(json, &reader)) return std::nullopt;
  return event;
}

}  // namespace omnibus::client
