#include "src/server/http/chunk_decoder.h"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

struct Outcome {
  int status = 0;  // 0: complete, -1: wants more
  std::string body;
  size_t used = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome decode(const std::string& bytes, size_t piece, uint64_t limit = 1000) {
  ChunkDecoder decoder;
  Outcome out{.status = -1, .body = {}, .used = 0};
  std::string buffer;
  for (size_t at = 0; at < bytes.size() && out.status == -1; at += piece) {
    buffer += bytes.substr(at, piece);
    const auto used = decoder.feed(buffer, out.body, limit);
    if (!used.ok()) return {.status = error_detail(used.status()).http, .body = {}, .used = 0};
    out.used += *used;
    buffer.erase(0, *used);
    if (decoder.complete()) out.status = 0;
  }
  return out;
}

TEST(ChunkDecoder, AnyPieces) {
  const std::string message = "5;ext=\"1\"\r\nhello\r\n0006\r\n world\r\n0\r\nX-T: a\r\nY:\r\n\r\n";
  const Outcome whole{.status = 0, .body = "hello world", .used = message.size()};
  for (size_t piece = 1; piece <= message.size(); ++piece) EXPECT_EQ(decode(message, piece), whole) << piece;
  EXPECT_EQ(decode(message + "GET", 1000), whole) << "what follows is left";
  for (size_t piece : {1, 2, 3, 4, 5}) {
    EXPECT_EQ(decode("0\r\n\r\n", piece), (Outcome{.status = 0, .body = "", .used = 5})) << piece;
  }
  for (size_t end = 0; end < message.size(); ++end)
    EXPECT_EQ(decode(message.substr(0, end), 7).status, -1) << end;
}

TEST(ChunkDecoder, Malformed) {
  for (const char* text : {"\r\n",
                           "x\r\n",
                           "-1\r\n",
                           "+1\r\n",
                           " 1\r\na\r\n",
                           "1 \r\na\r\n",
                           "0x1\r\n",
                           "1\na\r\n",
                           "1\r\na\n",
                           "1\r\nab\r\n",
                           "1\r\na0\r\n\r\n",
                           "ffffffffffffffff\r\n",
                           "0000000000000001\r\n",
                           "1;a\x01\r\n",
                           "1\r\r\n",
                           "0\r\n\n",
                           "0\r\nno colon\r\n\r\n",
                           "0\r\n: v\r\n\r\n",
                           "0\r\nX : v\r\n\r\n",
                           "0\r\n X: v\r\n\r\n",
                           "0\r\nX: \x7f\r\n\r\n"}) {
    EXPECT_EQ(decode(text, 1000).status, 400) << text;
    EXPECT_EQ(decode(text, 1).status, 400) << text;
  }
}

TEST(ChunkDecoder, Limits) {
  EXPECT_EQ(decode("a\r\n0123456789\r\n0\r\n\r\n", 3, 10).status, 0);
  EXPECT_EQ(decode("b\r\n", 3, 10).status, 413) << "before the data comes";
  EXPECT_EQ(decode("6\r\n012345\r\n5\r\n", 3, 10).status, 413);
  EXPECT_EQ(decode("fffffffffffffff\r\n", 3, 10).status, 413);
  const std::string line(kMaxChunkLineBytes + 1, 'a');
  EXPECT_EQ(decode("1;" + line, 1000).status, 400);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 2000; ++i) trailers += "X-T: abcdef\r\n";
  EXPECT_EQ(decode(trailers, 1000).status, 431);
}

}  // namespace
}  // namespace omnibus
