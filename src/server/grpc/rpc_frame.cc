#include "rpc_frame.h"

#include <cstdint>
#include <cstring>

#include "omnibus/base/common/check.h"

namespace omnibus {
namespace {

constexpr size_t kHeadBytes = 1 + sizeof(uint64_t);

}  // namespace

void append_frame(std::string& out, RpcFrameKind kind, std::string_view payload) {
  char head[kHeadBytes] = {static_cast<char>(kind)};
  const uint64_t size = payload.size();
  std::memcpy(head + 1, &size, sizeof size);
  out.append(head, kHeadBytes);
  out.append(payload);
}

std::optional<RpcFrame> take_frame(std::string_view& bytes) {
  if (bytes.empty()) return std::nullopt;
  uint64_t size = 0;
  OMNIBUS_CHECK(bytes.size() >= kHeadBytes, "a frame is cut short");
  std::memcpy(&size, bytes.data() + 1, sizeof size);
  OMNIBUS_CHECK(bytes.size() - kHeadBytes >= size, "a frame is cut short");
  const RpcFrame frame{static_cast<RpcFrameKind>(bytes[0]), bytes.substr(kHeadBytes, size)};
  bytes.remove_prefix(kHeadBytes + size);
  return frame;
}

}  // namespace omnibus
