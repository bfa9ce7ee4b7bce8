// TerminalChat: the conversation of `omnibus run`: prompt, commands, streaming.
#pragma once

#include <atomic>
#include <string>

#include "chat_session.h"
#include "terminal_input.h"

namespace omnibus {

class TerminalChat {
 public:
  TerminalChat(ChatSession* session, bool terminal) : session_(session), terminal_(terminal) {}

  // Until /exit, /bye or the end of input. Exit code.
  int run();
  // One question, the answer on stdout. Exit code.
  int answer_once(const std::string& question);

 private:
  enum class Next { kGoOn, kLeave };
  Next on_line(const std::string& line);
  Next on_command(const std::string& line);
  bool read_block(std::string first, std::string& text);
  void show_settings();
  void set(const std::string& words);
  bool ask(const std::string& question);

  ChatSession* const session_;
  const bool terminal_;
  LineReader input_;
  std::atomic<bool> interrupted_{false};
};

}  // namespace omnibus
