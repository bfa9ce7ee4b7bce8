// The writers: events with any text in them, written in any pieces through an outbox, come back whole through
// an independent reader of chunks, of events and of JSON. Input: two bytes that shape the writing, then text.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/src.hpp>

#include "omnibus/server/http/sse.h"

#include "fuzz/reference_json.h"
#include "src/server/http/outbox.h"

namespace {

using omnibus::HttpResponse;
using omnibus::Json;
using omnibus::Outbox;

// Events of a stream by the rules of the HTML standard: lines end in CR, LF or both; "data" fields are
// joined; an empty line ends the event.
std::vector<std::string> read_events(std::string_view stream) {
  std::vector<std::string> events;
  std::string data;
  bool any = false;
  while (!stream.empty()) {
    const size_t end = stream.find_first_of("\r\n");
    if (end == std::string_view::npos) __builtin_trap();  // an unfinished line
    const std::string_view line = stream.substr(0, end);
    const bool both = stream.substr(end).starts_with("\r\n");
    stream.remove_prefix(end + (both ? 2 : 1));
    if (line.empty()) {
      if (any) events.push_back(data);
      data.clear();
      any = false;
      continue;
    }
    const size_t colon = std::min(line.find(':'), line.size());
    std::string_view value = colon < line.size() ? line.substr(colon + 1) : "";
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (line.substr(0, colon) != "data") continue;
    if (any) data += '\n';
    data += value;
    any = true;
  }
  if (any) __builtin_trap();  // an event without its end
  return events;
}

std::string dechunk(std::string_view bytes) {
  std::string body;
  for (;;) {
    const size_t line = bytes.find("\r\n");
    if (line == std::string_view::npos) __builtin_trap();
    const size_t size = std::stoul(std::string(bytes.substr(0, line)), nullptr, 16);
    bytes.remove_prefix(line + 2);
    if (bytes.size() < size + 2 || bytes.substr(size, 2) != "\r\n") __builtin_trap();
    body += bytes.substr(0, size);
    bytes.remove_prefix(size + 2);
    if (size == 0) break;
  }
  if (!bytes.empty()) __builtin_trap();
  return body;
}

// Objects as the API makes them, with the input as text, name and number.
std::vector<Json> make_events(std::string_view text, size_t count) {
  std::vector<Json> events;
  for (size_t i = 0; i < count; ++i) {
    const std::string piece(text.substr(text.size() * i / count, text.size() / count + 1));
    double number = 0;
    std::memcpy(&number, piece.data(), std::min(sizeof number, piece.size()));
    Json event;
    event["choices"] =
        Json::array({Json{{"index", i}, {"delta", {{"content", piece}}}, {"logprob", number}}});
    if (piece.size() < 64) event["name " + piece] = nullptr;
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t count = 1 + data[0] % 7, takes = 1 + data[1] % 5;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::vector<Json> events = make_events(text, count);

  Outbox outbox(omnibus::AnswerContext{.request_id = "id", .headers = {}}, [] {});
  outbox.begin(omnibus::sse_head());
  std::string wire;
  std::vector<std::string> written;
  for (size_t i = 0; i < count; ++i) {
    written.push_back(omnibus::dump_json(events[i]));
    outbox.write(omnibus::sse_event(written.back()));
    if (i % takes == 0) wire += outbox.take().bytes;
  }
  outbox.write(omnibus::sse_done());
  outbox.end();
  const Outbox::Batch last = outbox.take();
  wire += last.bytes;
  if (!last.done) __builtin_trap();

  const size_t head = wire.find("\r\n\r\n");
  if (head == std::string::npos) __builtin_trap();
  const std::vector<std::string> read = read_events(dechunk(std::string_view(wire).substr(head + 4)));
  if (read.size() != count + 1 || read.back() != "[DONE]") __builtin_trap();
  for (size_t i = 0; i < count; ++i) {
    const auto value = omnibus::fuzz::reference_parse(read[i]);
    if (read[i] != written[i] || !value) __builtin_trap();
    // What was valid text is what is read; the rest has been made valid.
    const auto sent = omnibus::parse_json(written[i]);
    if (!sent.ok() || !omnibus::fuzz::same(*sent, *value)) __builtin_trap();
    const std::string& before = events[i]["choices"][0]["delta"]["content"].get_ref<const std::string&>();
    const std::string& after = (*sent)["choices"][0]["delta"]["content"].get_ref<const std::string&>();
    if (after.find("\xef\xbf\xbd") == std::string::npos && after != before) __builtin_trap();
    const double number = events[i]["choices"][0]["logprob"].get<double>();
    if (std::isfinite(number) != (*sent)["choices"][0]["logprob"].is_number()) __builtin_trap();
    if (std::isfinite(number) && (*sent)["choices"][0]["logprob"].get<double>() != number) __builtin_trap();
  }
  return 0;
}
