// The JSON that requests of gRPC become, against protobuf's own writer, over random messages.
#include "proto_json.h"

#include <cmath>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <omnibus/v1/inference.pb.h>

#include "omnibus/server/http/json_body.h"

namespace omnibus {
namespace {

namespace pb = google::protobuf;
using Type = pb::FieldDescriptor::CppType;
using Random = std::mt19937_64;

constexpr uint64_t kLimit = 1 << 20;

uint64_t below(Random& random, uint64_t n) { return random() % n; }

std::string random_text(Random& random) {
  static const std::vector<std::string> parts = {
      "a", "\"", "\\", "\n", "é", "\xF0\x9F\xA4\x94", std::string(1, '\0'), "/"};
  std::string text;
  for (uint64_t n = below(random, 6); n > 0; --n) text += parts[below(random, parts.size())];
  return text;
}

double random_number(Random& random) {
  switch (below(random, 4)) {
    case 0:
      return static_cast<double>(below(random, 100));
    case 1:
      return -1e300;
    case 2:
      return 0.1;
    default:
      return std::ldexp(static_cast<double>(random()), -70);
  }
}

int64_t random_integer(Random& random) {
  switch (below(random, 3)) {
    case 0:
      return static_cast<int64_t>(random());
    case 1:
      return std::numeric_limits<int64_t>::min();
    default:
      return static_cast<int64_t>(below(random, 1000)) - 500;
  }
}

void fill_struct(Random& random, pb::Struct& object, int depth);

void fill_value(Random& random, pb::Value& value, int depth) {
  switch (below(random, depth > 0 ? 6 : 4)) {
    case 0:
      value.set_null_value(pb::NULL_VALUE);
      break;
    case 1:
      value.set_number_value(random_number(random));
      break;
    case 2:
      value.set_string_value(random_text(random));
      break;
    case 3:
      value.set_bool_value(below(random, 2) == 0);
      break;
    case 4:
      fill_struct(random, *value.mutable_struct_value(), depth - 1);
      break;
    default:
      value.mutable_list_value();
      for (uint64_t n = below(random, 3); n > 0; --n) {
        fill_value(random, *value.mutable_list_value()->add_values(), depth - 1);
      }
  }
}

void fill_struct(Random& random, pb::Struct& object, int depth) {
  object.mutable_fields();
  for (uint64_t n = below(random, 3); n > 0; --n) {
    fill_value(random, (*object.mutable_fields())[random_text(random)], depth);
  }
}

void fill(Random& random, pb::Message& message);

void fill_sub(Random& random, pb::Message& message) {
  if (auto* object = pb::DynamicCastToGenerated<pb::Struct>(&message)) {
    fill_struct(random, *object, 4);
  } else {
    fill(random, message);
  }
}

void fill_field(Random& random, pb::Message& message, const pb::FieldDescriptor* field) {
  const pb::Reflection& r = *message.GetReflection();
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case Type::CPPTYPE_BOOL:
      return r.SetBool(&message, field, below(random, 2) == 0);
    case Type::CPPTYPE_INT64:
      return many ? r.AddInt64(&message, field, random_integer(random))
                  : r.SetInt64(&message, field, random_integer(random));
    case Type::CPPTYPE_DOUBLE:
      return r.SetDouble(&message, field, random_number(random));
    case Type::CPPTYPE_STRING:
      return many ? r.AddString(&message, field, random_text(random))
                  : r.SetString(&message, field, random_text(random));
    default:
      return fill_sub(random, many ? *r.AddMessage(&message, field) : *r.MutableMessage(&message, field));
  }
}

void fill(Random& random, pb::Message& message) {
  const pb::Descriptor* type = message.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const pb::FieldDescriptor* field = type->field(i);
    if (field->is_map()) continue;  // logit_bias: a test of its own
    for (uint64_t n = below(random, field->is_repeated() ? 4 : 2); n > 0; --n) {
      fill_field(random, message, field);
    }
  }
}

// protobuf's JSON, in the form that ours has: its 64-bit numbers are strings.
Json unquoted(const Json& value, const pb::Descriptor* type) {
  Json out = Json::object();
  const auto add = [&](const std::string& name, Json item) { out[name] = std::move(item); };
  for (const auto& [name, item] : value.items()) {
    const pb::FieldDescriptor* field = type->FindFieldByName(name);
    const auto one = [&](const Json& v) -> Json {
      if (field->cpp_type() == Type::CPPTYPE_INT64) return std::stoll(v.get<std::string>());
      if (field->message_type() != nullptr && field->message_type()->file()->package() == "omnibus.v1") {
        return unquoted(v, field->message_type());
      }
      return v;
    };
    if (name == "sampling") {
      const Json inner = one(item);
      for (const auto& [key, own] : inner.items()) add(key, own);
    } else if (name == "prompt_token_ids") {
      const Json inner = one(item);
      add("prompt", inner.value("ids", Json::array()));
    } else if (field->is_repeated()) {
      Json list = Json::array();
      for (const Json& v : item) list.push_back(one(v));
      add(name, std::move(list));
    } else {
      add(name, one(item));
    }
  }
  return out;
}

// Order of keys, and 3 against 3.0, do not count.
bool same(const Json& a, const Json& b) {
  return nlohmann::json::parse(a.dump()) == nlohmann::json::parse(b.dump());
}

template <typename Message>
void compare_random(uint64_t seed) {
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    Message message;
    fill(random, message);
    const auto ours = to_json_body(message, kLimit);
    ASSERT_TRUE(ours.ok()) << status_message(ours.status());
    std::string theirs;
    pb::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    ASSERT_TRUE(pb::util::MessageToJsonString(message, &theirs, options).ok());
    const auto parsed = parse_json(*ours);
    ASSERT_TRUE(parsed.ok()) << *ours;
    EXPECT_TRUE(same(*parsed, unquoted(Json::parse(theirs), Message::descriptor())))
        << "seed " << seed << " round " << round << "\n"
        << *ours << "\n"
        << theirs;
  }
}

TEST(ProtoJson, IsWhatProtobufItselfWrites) {
  const uint64_t seed = std::random_device{}();
  compare_random<v1::GenerateRequest>(seed);
  compare_random<v1::ChatRequest>(seed);
  compare_random<v1::TokenizeRequest>(seed);
  compare_random<v1::DetokenizeRequest>(seed);
}

TEST(ProtoJson, ZeroIsNotAbsent) {
  v1::GenerateRequest request;
  EXPECT_EQ(to_json_body(request, kLimit).value(), "{}");
  request.mutable_sampling()->set_temperature(0);
  request.mutable_sampling()->set_ignore_eos(false);
  EXPECT_EQ(to_json_body(request, kLimit).value(), R"({"temperature":0,"ignore_eos":false})");
}

TEST(ProtoJson, MapsOfTokens) {
  v1::GenerateRequest request;
  (*request.mutable_sampling()->mutable_logit_bias())[-5] = 0.5;
  EXPECT_EQ(to_json_body(request, kLimit).value(), R"({"logit_bias":{"-5":0.5}})");
}

TEST(ProtoJson, NumbersThatJsonLacksAreNamed) {
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    v1::GenerateRequest request;
    request.mutable_sampling()->set_min_p(value);
    EXPECT_EQ(error_detail(to_json_body(request, kLimit).status()).param, "min_p");
    request.Clear();
    (*request.mutable_sampling()->mutable_logit_bias())[1] = value;
    EXPECT_EQ(error_detail(to_json_body(request, kLimit).status()).param, "logit_bias");
    v1::ChatRequest chat;
    (*chat.mutable_chat_template_kwargs()->mutable_fields())["a"].set_number_value(value);
    EXPECT_EQ(error_detail(to_json_body(chat, kLimit).status()).param, "chat_template_kwargs");
  }
}

TEST(ProtoJson, UnknownFieldsHaveANumberForAName) {
  v1::GenerateRequest request;
  // Field 900, twice, and one within a message.
  ASSERT_TRUE(request.ParseFromString(std::string("\xa0\x38\x01\xa0\x38\x02\x22\x03\xa0\x38\x01", 11)));
  EXPECT_EQ(to_json_body(request, kLimit).value(), R"({"#900":true,"#900":true})");
}

TEST(ProtoJson, StopsAtTheLimit) {
  v1::GenerateRequest request;
  request.set_prompt(std::string(600, '\x01'));  // six bytes each as JSON
  EXPECT_EQ(error_detail(to_json_body(request, 3000).status()).http, 413);
  EXPECT_TRUE(to_json_body(request, 4000).ok());
  for (int i = 0; i < 2000; ++i) request.mutable_prompt_token_ids()->add_ids(i);
  EXPECT_EQ(error_detail(to_json_body(request, 3000).status()).http, 413);
}

}  // namespace
}  // namespace omnibus
