// Frames: how several messages, and the end of a call, travel in the bytes that a Reply takes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace omnibus {

// kMessage: a protobuf message for the client. kError: a google.rpc.Status that the call is to end with.
enum class RpcFrameKind : char { kMessage = 0, kError = 1 };

struct RpcFrame {
  RpcFrameKind kind;
  std::string_view payload;
};

void append_frame(std::string& out, RpcFrameKind kind, std::string_view payload);

// Takes the first frame from the front of `bytes`; nullopt when none is left. `bytes` holds whole frames.
std::optional<RpcFrame> take_frame(std::string_view& bytes);

}  // namespace omnibus
