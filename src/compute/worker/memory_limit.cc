#include "memory_limit.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string_view>

namespace omnibus {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// The number in a limit file; "max", absence and v1's "unlimited" (about 2^63) are kNone.
int64_t read_limit(const std::string& path) {
  std::ifstream in(path);
  std::string word;
  if (!(in >> word) || word.empty() || word[0] < '0' || word[0] > '9') return kNone;
  const long long value = std::strtoll(word.c_str(), nullptr, 10);
  return value <= 0 || value > (int64_t{1} << 60) ? kNone : value;
}

int64_t mem_total(const std::string& root) {
  std::ifstream in(root + "/proc/meminfo");
  std::string key, unit;
  for (int64_t kib = 0; in >> key >> kib >> unit;)
    if (key == "MemTotal:") return kib * 1024;
  return kNone;
}

// The smallest limit from `path` up to the mount point.
int64_t smallest_on_path(const std::string& mount, std::string path, const char* file) {
  int64_t limit = kNone;
  for (;;) {
    limit = std::min(limit, read_limit(mount + path + "/" + file));
    const size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return limit;
    path.resize(slash);
  }
}

int64_t cgroup_limit(const std::string& root) {
  std::ifstream in(root + "/proc/self/cgroup");
  int64_t limit = std::min(read_limit(root + "/sys/fs/cgroup/memory.max"),
                           read_limit(root + "/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  for (std::string line; std::getline(in, line);) {  // "0::/path" (v2), "5:memory:/path" (v1)
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty())
      limit = std::min(limit, smallest_on_path(root + "/sys/fs/cgroup", path, "memory.max"));
    else if (controllers == "memory")
      limit =
          std::min(limit, smallest_on_path(root + "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
  }
  return limit;
}

}  // namespace

int64_t memory_limit(const std::string& root) {
  const int64_t limit = std::min(mem_total(root), cgroup_limit(root));
  return limit == kNone ? 0 : limit;
}

}  // namespace omnibus
