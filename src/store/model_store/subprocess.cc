#include "subprocess.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paths.h"

namespace omnibus {
namespace {

constexpr size_t kStderrKept = 2000;  // bytes; the cause stands at the end

// Everything that allocates, done before fork: the child may only make async-signal-safe calls.
struct Prepared {
  std::vector<std::string> environment;
  std::vector<char*> argv, envp;

  explicit Prepared(const Subprocess& command) {
    for (const auto& arg : command.argv) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    for (char** e = environ; *e != nullptr; ++e) {
      const std::string_view entry = *e;
      bool replaced = false;
      for (const auto& [name, value] : command.environment) replaced |= entry.starts_with(name + "=");
      if (!replaced) environment.emplace_back(entry);
    }
    for (const auto& [name, value] : command.environment) environment.push_back(name + "=" + value);
    for (auto& entry : environment) envp.push_back(entry.data());
    envp.push_back(nullptr);
  }
};

[[noreturn]] void run_child(const Prepared& prepared, pid_t parent, int out, int err) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execvpe(prepared.argv[0], prepared.argv.data(), prepared.envp.data());
  const char message[] = "cannot be started\n";
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, message, sizeof message - 1);
  _exit(127);
}

// Reads the child's stderr to its end, keeping the tail.
std::string drain(int fd, const std::function<void()>& tick) {
  std::string tail;
  char buffer[4096];
  while (true) {
    pollfd waiting{fd, POLLIN, 0};
    const int ready = poll(&waiting, 1, 200);
    if (tick) tick();
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return tail;
    tail.append(buffer, static_cast<size_t>(n));
    if (tail.size() > kStderrKept) tail.erase(0, tail.size() - kStderrKept);
  }
}

}  // namespace

Status run_subprocess(const Subprocess& command) {
  const Prepared prepared(command);
  const std::string& program = command.argv[0];
  const std::string out_path = command.stdout_path.empty() ? "/dev/null" : command.stdout_path;
  Fd out(open(out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!out.valid()) return absl::UnavailableError(errno_text("cannot write", out_path));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::UnavailableError(errno_text("cannot start", program));
  Fd err_read(ends[0]), err_write(ends[1]);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return absl::UnavailableError(errno_text("cannot start", program));
  if (child == 0) run_child(prepared, parent, out.get(), err_write.get());
  err_write = Fd();
  std::string tail = drain(err_read.get(), command.while_running);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    return absl::NotFoundError(fmt::format("'{}' {}", program, tail));
  }
  const std::string how = WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                                              : fmt::format("failed with code {}", WEXITSTATUS(status));
  return absl::UnavailableError(fmt::format("'{}' {}: {}", program, how, tail));
}

}  // namespace omnibus
