// Identifiers. Request ids are made by the server, never taken from a client.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace omnibus {

// One sequence in the engine core; unique for the life of a process.
using RequestId = uint64_t;
// Token id in a vocabulary; -1 is "none".
using TokenId = int32_t;
// Index of a KV block in its pool.
using BlockId = int32_t;

inline constexpr TokenId kNoToken = -1;

// `prefix` + 24 random hex digits, e.g. "chatcmpl-3f…"; any thread.
std::string random_id(std::string_view prefix);

}  // namespace omnibus
