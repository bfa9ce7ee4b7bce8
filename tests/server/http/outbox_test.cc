#include "src/server/http/outbox.h"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

HttpResponse text(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

AnswerContext context() {
  AnswerContext c;
  c.request_id = "id";
  return c;
}

std::string body_of(const std::string& bytes) { return bytes.substr(bytes.find("\r\n\r\n") + 4); }

TEST(Outbox, WholeAnswer) {
  int wakes = 0;
  Outbox box(context(), [&] { ++wakes; });
  EXPECT_TRUE(box.take().bytes.empty());
  box.send(text(200, "hello"));
  EXPECT_EQ(wakes, 1);
  const auto batch = box.take();
  EXPECT_TRUE(batch.done);
  EXPECT_FALSE(batch.close);
  EXPECT_NE(batch.bytes.find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_NE(batch.bytes.find("x-request-id: id\r\n"), std::string::npos);
  EXPECT_EQ(body_of(batch.bytes), "hello");
  box.send(text(500, "twice"));
  EXPECT_TRUE(box.take().bytes.empty());
}

TEST(Outbox, StreamIsChunkedAndCoalesced) {
  Outbox box(context(), [] {});
  box.begin(text(200, ""));
  box.write("ab");
  box.write("cd");
  EXPECT_EQ(box.backlog(), 4U);
  auto batch = box.take();
  EXPECT_EQ(body_of(batch.bytes), "4\r\nabcd\r\n");
  EXPECT_FALSE(batch.done);
  EXPECT_EQ(box.backlog(), batch.bytes.size());
  box.sent(batch.bytes.size());
  EXPECT_EQ(box.backlog(), 0U);
  box.write("e");
  box.end();
  box.write("late");
  batch = box.take();
  EXPECT_EQ(batch.bytes, "1\r\ne\r\n0\r\n\r\n");
  EXPECT_TRUE(batch.done);
  EXPECT_TRUE(box.take().bytes.empty());
}

TEST(Outbox, Http10StreamEndsWithTheConnection) {
  AnswerContext c = context();
  c.http_1_0 = true;
  Outbox box(c, [] {});
  box.begin(text(200, ""));
  box.write("ab");
  box.end();
  const auto batch = box.take();
  EXPECT_EQ(body_of(batch.bytes), "ab");
  EXPECT_TRUE(batch.done && batch.close);
}

TEST(Outbox, HeadHasNoBody) {
  AnswerContext c = context();
  c.head_only = true;
  Outbox box(c, [] {});
  box.send(text(200, "hello"));
  const auto batch = box.take();
  EXPECT_NE(batch.bytes.find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_EQ(body_of(batch.bytes), "");
}

TEST(Outbox, AbandonedBeforeTheHeadIs500) {
  Outbox box(context(), [] {});
  box.abandon();
  const auto batch = box.take();
  EXPECT_TRUE(batch.bytes.starts_with("HTTP/1.1 500 "));
  EXPECT_TRUE(batch.done && batch.close);
}

TEST(Outbox, AbandonedStreamHasNoLastChunk) {
  Outbox box(context(), [] {});
  box.begin(text(200, ""));
  box.write("ab");
  box.abandon();
  const auto batch = box.take();
  EXPECT_EQ(body_of(batch.bytes), "2\r\nab\r\n");
  EXPECT_TRUE(batch.done && batch.close);
}

TEST(Outbox, GoneIsToldOnce) {
  int told = 0;
  Outbox box(context(), [] {});
  box.on_gone([&] { ++told; });
  box.set_gone();
  box.set_gone();
  EXPECT_EQ(told, 1);
  box.on_gone([&] { ++told; });  // too late to wait for it: at once
  EXPECT_EQ(told, 2);
  box.send(text(200, "x"));
  EXPECT_TRUE(box.take().bytes.empty());
}

TEST(Outbox, NobodyIsGoneAfterACompleteAnswer) {
  int told = 0;
  Outbox box(context(), [] {});
  box.on_gone([&] { ++told; });
  box.send(text(200, "x"));
  box.set_gone();
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace omnibus
