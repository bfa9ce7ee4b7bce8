#include "terminal_chat.h"

#include <charconv>
#include <cstdio>
#include <thread>
#include <type_traits>

#include <fmt/format.h>
#include <unistd.h>

#include "commands.h"

namespace omnibus {
namespace {

constexpr char kHelp[] =
    "  /help            this list\n"
    "  /clear           forget the conversation\n"
    "  /system TEXT     set the system message (without TEXT: show it)\n"
    "  /set             show the settings\n"
    "  /set NAME VALUE  temperature, top_p, top_k, min_p, max_tokens, seed\n"
    "  /bye, /exit      leave (Ctrl-D does, too)\n"
    "  \"\"\"              begins and ends a message of several lines\n"
    "  Ctrl-C           stops the answer\n";

std::string trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

template <typename T>
bool parse_within(const std::string& text, T min, T max, T& out) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= min && value <= max))
    return false;
  out = value;
  return true;
}

// What is wrong with it, or nothing and it is set.
template <typename T>
std::string set_within(const std::string& name, const std::string& value, T min, T max, T& out) {
  if (parse_within(value, min, max, out)) return {};
  return fmt::format("{} takes a {} from {} to {}, not '{}'.", name,
                     std::is_integral_v<T> ? "whole number" : "number", min, max, value);
}

std::string apply_setting(ChatSession& session, const std::string& name, const std::string& value) {
  SamplingParams& s = session.sampling();
  if (name == "temperature") return set_within(name, value, 0.0F, 2.0F, s.temperature);
  if (name == "top_p") return set_within(name, value, 0.0F, 1.0F, s.top_p);
  if (name == "min_p") return set_within(name, value, 0.0F, 1.0F, s.min_p);
  if (name == "top_k") return set_within(name, value, -1, 1 << 30, s.top_k);
  if (name == "max_tokens") return set_within(name, value, 0, 1 << 30, s.max_tokens);
  if (name == "seed") {
    uint64_t seed = 0;
    std::string error = set_within(name, value, uint64_t{0}, ~uint64_t{0}, seed);
    if (error.empty()) session.set_seed(seed);
    return error;
  }
  return fmt::format("There is no setting '{}'; /help lists them.", name);
}

// Reasoning is for the person who watches: dim on a terminal, left out of a file or pipe.
class AnswerPrinter {
 public:
  explicit AnswerPrinter(bool terminal) : terminal_(terminal) {}

  void print(std::string_view text, bool is_reasoning) {
    if (is_reasoning && !terminal_) return;
    if (thought_ && !is_reasoning) fmt::print("\n\n");
    thought_ = is_reasoning;
    if (is_reasoning) {
      // Back to normal after each piece: whatever ends the answer, the terminal is left as it was.
      fmt::print("\x1b[2m{}\x1b[0m", text);
    } else {
      std::fwrite(text.data(), 1, text.size(), stdout);
    }
    std::fflush(stdout);
  }

 private:
  const bool terminal_;
  bool thought_ = false;  // what was printed last is reasoning
};

}  // namespace

int TerminalChat::run() {
  const InterruptFlag flag(&interrupted_);
  if (terminal_) fmt::print("Type a message, /help for commands.\n");
  for (;;) {
    if (terminal_) fmt::print(">>> ");
    std::fflush(stdout);
    std::string line;
    switch (input_.read_line(line)) {
      case LineReader::Result::kEnd:
        if (terminal_) fmt::print("\n");
        return kExitOk;
      case LineReader::Result::kInterrupted:
        interrupted_ = false;
        fmt::print("\n(/bye or Ctrl-D leaves)\n");
        continue;
      case LineReader::Result::kLine:
        if (on_line(line) == Next::kLeave) return kExitOk;
    }
  }
}

int TerminalChat::answer_once(const std::string& question) {
  const InterruptFlag flag(&interrupted_);
  return ask(question) ? kExitOk : kExitFailure;
}

TerminalChat::Next TerminalChat::on_line(const std::string& line) {
  const std::string trimmed = trim(line);
  if (trimmed.empty()) return Next::kGoOn;
  if (trimmed[0] == '/') return on_command(trimmed);
  std::string text = line;
  if (trimmed.starts_with("\"\"\"") && !read_block(trimmed.substr(3), text)) return Next::kGoOn;
  if (!trim(text).empty()) ask(text);
  return Next::kGoOn;
}

// Lines up to the closing """; false when Ctrl-C gave the message up.
bool TerminalChat::read_block(std::string first, std::string& text) {
  text.clear();
  for (std::string line = std::move(first);;) {
    const std::string trimmed = trim(line);
    if (trimmed.ends_with("\"\"\"")) {
      text += line.substr(0, line.rfind("\"\"\""));
      return true;
    }
    text += line + "\n";
    if (terminal_) fmt::print("... ");
    std::fflush(stdout);
    const auto result = input_.read_line(line);
    if (result == LineReader::Result::kEnd) return true;
    if (result == LineReader::Result::kInterrupted) {
      interrupted_ = false;
      fmt::print("\n");
      return false;
    }
  }
}

TerminalChat::Next TerminalChat::on_command(const std::string& line) {
  const size_t space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : trim(line.substr(space));
  if (name == "/bye" || name == "/exit") return Next::kLeave;
  if (name == "/help" || name == "/?") {
    fmt::print("{}", kHelp);
  } else if (name == "/clear") {
    session_->clear();
    fmt::print("The conversation is forgotten.\n");
  } else if (name == "/system") {
    if (!rest.empty()) session_->set_system(rest);
    fmt::print("system: {}\n", session_->system().empty() ? "(none)" : session_->system());
  } else if (name == "/set") {
    set(rest);
  } else {
    fmt::print("There is no {}; /help lists the commands.\n", name);
  }
  return Next::kGoOn;
}

void TerminalChat::show_settings() {
  const SamplingParams& s = session_->sampling();
  fmt::print("temperature {}\ntop_p {}\ntop_k {}\nmin_p {}\nmax_tokens {}\n", s.temperature, s.top_p, s.top_k,
             s.min_p, s.max_tokens > 0 ? std::to_string(s.max_tokens) : "(what the context holds)");
}

void TerminalChat::set(const std::string& words) {
  if (words.empty()) return show_settings();
  const size_t space = words.find(' ');
  const std::string name = words.substr(0, space);
  const std::string value = space == std::string::npos ? "" : trim(words.substr(space));
  const std::string error = apply_setting(*session_, name, value);
  fmt::print("{}\n", error.empty() ? fmt::format("{} = {}", name, value) : error);
}

bool TerminalChat::ask(const std::string& question) {
  // The handler can only set a flag: this passes it on while ask() waits.
  std::atomic<bool> done{false};
  std::thread watcher([&] {
    while (!done) {
      if (interrupted_) session_->stop();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  AnswerPrinter printer(isatty(STDOUT_FILENO) == 1);
  const auto answer = session_->ask(
      question, [&printer](std::string_view text, bool is_reasoning) { printer.print(text, is_reasoning); });
  done = true;
  watcher.join();
  interrupted_ = false;
  fmt::print("\n");
  std::fflush(stdout);
  if (!answer.ok()) {
    report_failure(answer.status());
    return false;
  }
  if (answer->turns_dropped > 0) {
    fmt::print(stderr, "(the oldest {} messages no longer fit into the context and were left out)\n",
               answer->turns_dropped);
  }
  if (answer->stopped) fmt::print(stderr, "(stopped)\n");
  if (answer->cut) fmt::print(stderr, "(cut at the token limit)\n");
  if (terminal_ && answer->seconds > 0) {
    fmt::print(stderr, "({} tokens, {:.1f} per second)\n", answer->usage.completion_tokens,
               answer->usage.completion_tokens / answer->seconds);
  }
  return true;
}

}  // namespace omnibus
