#include "proto_json.h"

#include <cmath>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <omnibus/v1/inference.pb.h>

#include "omnibus/server/http/json_body.h"

namespace omnibus {
namespace {

namespace pb = google::protobuf;
using Type = pb::FieldDescriptor::CppType;

class JsonWriter {
 public:
  explicit JsonWriter(uint64_t limit) : limit_(limit) {}

  Status object(const pb::Message& message) {
    out_ += '{';
    bool first = true;
    OMNIBUS_RETURN_IF_ERROR(fields(message, first));
    out_ += '}';
    return {};
  }
  std::string take() { return std::move(out_); }

 private:
  Status fields(const pb::Message& message, bool& first);
  Status value(const pb::Message& message, const pb::FieldDescriptor& field);
  Status list(const pb::Message& message, const pb::FieldDescriptor& field);
  Status map(const pb::Message& message, const pb::FieldDescriptor& field);
  Status item(const pb::Message& message, const pb::FieldDescriptor& field, int index);
  Status sub_message(const pb::Message& message);
  Status struct_value(const pb::Value& value);
  Status struct_object(const pb::Struct& object);
  Status number(double number);

  void comma(bool& first) {
    if (!first) out_ += ',';
    first = false;
  }
  void key(std::string_view name, bool& first) {
    comma(first);
    string(name);
    out_ += ':';
  }
  void string(std::string_view text) { out_ += dump_json(Json(text)); }
  void integer(int64_t value) { fmt::format_to(std::back_inserter(out_), "{}", value); }
  Status check_size() const {
    if (out_.size() <= limit_) return {};
    return with_detail(
        absl::InvalidArgumentError(fmt::format("The request is longer than {} bytes as JSON", limit_)),
        ErrorDetail{.http = 413, .type = {}, .code = {}, .param = {}});
  }

  const uint64_t limit_;
  std::string field_;  // of the outermost message: named in errors
  int depth_ = 0;
  std::string out_;
};

Status JsonWriter::fields(const pb::Message& message, bool& first) {
  const pb::Reflection& reflection = *message.GetReflection();
  std::vector<const pb::FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const pb::FieldDescriptor* field : set) {
    const std::string& name = field->name();
    if (field->message_type() == v1::SamplingParams::descriptor()) {
      OMNIBUS_RETURN_IF_ERROR(fields(reflection.GetMessage(message, field), first));
      continue;
    }
    if (depth_ == 0) field_ = name;
    key(name == "prompt_token_ids" ? "prompt" : std::string_view(name), first);
    OMNIBUS_RETURN_IF_ERROR(value(message, *field));
  }
  const pb::UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
  int last = 0;
  for (int i = 0; i < unknown.field_count(); ++i) {
    const int number = unknown.field(i).number();
    if (number == std::exchange(last, number)) continue;  // of a list
    key(fmt::format("#{}", number), first);
    out_ += "true";
    OMNIBUS_RETURN_IF_ERROR(check_size());
  }
  return {};
}

Status JsonWriter::value(const pb::Message& message, const pb::FieldDescriptor& field) {
  if (field.is_map()) return map(message, field);
  if (field.is_repeated()) return list(message, field);
  return item(message, field, -1);
}

Status JsonWriter::list(const pb::Message& message, const pb::FieldDescriptor& field) {
  out_ += '[';
  bool first = true;
  const int size = message.GetReflection()->FieldSize(message, &field);
  for (int i = 0; i < size; ++i) {
    comma(first);
    OMNIBUS_RETURN_IF_ERROR(item(message, field, i));
  }
  out_ += ']';
  return {};
}

// Keys of a map may be integers; those of JSON are strings.
Status JsonWriter::map(const pb::Message& message, const pb::FieldDescriptor& field) {
  const pb::Reflection& reflection = *message.GetReflection();
  const pb::FieldDescriptor& key_field = *field.message_type()->map_key();
  const pb::FieldDescriptor& value_field = *field.message_type()->map_value();
  out_ += '{';
  bool first = true;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const pb::Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    comma(first);
    out_ += '"';
    integer(entry.GetReflection()->GetInt64(entry, &key_field));
    out_ += "\":";
    OMNIBUS_RETURN_IF_ERROR(item(entry, value_field, -1));
  }
  out_ += '}';
  return {};
}

// One value of a field; index -1: the field is not repeated.
Status JsonWriter::item(const pb::Message& message, const pb::FieldDescriptor& field, int index) {
  const pb::Reflection& r = *message.GetReflection();
  const bool one = index < 0;
  switch (field.cpp_type()) {
    case Type::CPPTYPE_BOOL:
      out_ += r.GetBool(message, &field) ? "true" : "false";
      return {};
    case Type::CPPTYPE_INT64:
      integer(one ? r.GetInt64(message, &field) : r.GetRepeatedInt64(message, &field, index));
      return check_size();
    case Type::CPPTYPE_DOUBLE:
      return number(one ? r.GetDouble(message, &field) : r.GetRepeatedDouble(message, &field, index));
    case Type::CPPTYPE_STRING:
      string(one ? r.GetString(message, &field) : r.GetRepeatedString(message, &field, index));
      return check_size();
    case Type::CPPTYPE_MESSAGE:
      return sub_message(one ? r.GetMessage(message, &field) : r.GetRepeatedMessage(message, &field, index));
    default:
      return absl::InternalError("A request has a field of a type without a form in JSON");
  }
}

Status JsonWriter::sub_message(const pb::Message& message) {
  if (const auto* object = pb::DynamicCastToGenerated<pb::Struct>(&message)) return struct_object(*object);
  if (const auto* tokens = pb::DynamicCastToGenerated<v1::TokenIds>(&message)) {
    return list(*tokens, *v1::TokenIds::descriptor()->FindFieldByNumber(v1::TokenIds::kIdsFieldNumber));
  }
  ++depth_;
  const Status status = object(message);
  --depth_;
  return status;
}

Status JsonWriter::struct_object(const pb::Struct& object) {
  out_ += '{';
  bool first = true;
  for (const auto& [name, value] : object.fields()) {
    key(name, first);
    OMNIBUS_RETURN_IF_ERROR(struct_value(value));
  }
  out_ += '}';
  return check_size();
}

// As deep as protobuf's parser lets a message be (100).
Status JsonWriter::struct_value(const pb::Value& value) {
  bool first = true;
  switch (value.kind_case()) {
    case pb::Value::kNumberValue:
      return number(value.number_value());
    case pb::Value::kStringValue:
      string(value.string_value());
      return check_size();
    case pb::Value::kBoolValue:
      out_ += value.bool_value() ? "true" : "false";
      return {};
    case pb::Value::kStructValue:
      return struct_object(value.struct_value());
    case pb::Value::kListValue:
      out_ += '[';
      for (const pb::Value& element : value.list_value().values()) {
        comma(first);
        OMNIBUS_RETURN_IF_ERROR(struct_value(element));
      }
      out_ += ']';
      return check_size();
    default:
      out_ += "null";
      return {};
  }
}

Status JsonWriter::number(double number) {
  if (!std::isfinite(number)) {
    return invalid_field(field_, fmt::format("Invalid '{}': must be a finite number, got {}", field_, number),
                         "invalid_type");
  }
  fmt::format_to(std::back_inserter(out_), "{}", number);
  return check_size();
}

}  // namespace

StatusOr<std::string> to_json_body(const google::protobuf::Message& message, uint64_t limit) {
  JsonWriter writer(limit);
  OMNIBUS_RETURN_IF_ERROR(writer.object(message));
  return writer.take();
}

}  // namespace omnibus
