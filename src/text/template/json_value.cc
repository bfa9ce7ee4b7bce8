#include "json_value.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "format.h"
#include "operators.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

using Json = nlohmann::ordered_json;

// The server's limit for request bodies is 64.
constexpr int kMaxJsonDepth = 200;

constexpr std::string_view kRoles[] = {"system",    "user",    "assistant", "tool",
                                       "developer", "ipython", "function"};

Value convert(const Json& json, Heap& heap, int depth) {
  if (depth > kMaxJsonDepth)
    throw TemplateError(TemplateError::Kind::kVariables, "the variables are nested too deeply");
  Budget& budget = heap.budget();
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<int64_t>();
    case Json::value_t::number_unsigned:
      return static_cast<Integer>(json.get<uint64_t>());
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return make_text(json.get_ref<const std::string&>(), false, &budget);
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(convert(item, heap, depth + 1));
      return heap.list(std::move(items));
    }
    case Json::value_t::object: {
      Dict* dict = heap.make<Dict>();
      for (const auto& [key, value] : json.items())
        dict->set(make_text(key, false, &budget), convert(value, heap, depth + 1), budget);
      return dict;
    }
    default:
      return None{};
  }
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Heap& heap) : style_(style), heap_(heap), out_(&heap.budget()) {}

  TextPtr run(const Value& value) {
    write(value, 0);
    return out_.build();
  }

 private:
  void put(std::string_view piece) { out_.append(piece, false); }

  void write(const Value& value, int depth) {
    if (depth > kMaxJsonDepth) fail("tojson: the value is nested too deeply");
    heap_.budget().step();
    switch (value.type()) {
      case Type::kNone:
        return put("null");
      case Type::kBool:
        return put(value.boolean() ? "true" : "false");
      case Type::kInt:
        return put(format_integer(value.integer()));
      case Type::kFloat:
        return put(number(value.real()));
      case Type::kText:
        return string(*value.text());
      case Type::kList:
        return list(value.list()->items, depth);
      case Type::kDict:
        return dict(*value.dict(), depth);
      case Type::kUndefined:
      case Type::kObject:
        fail(std::string("Object of type ") + type_name(value) + " is not JSON serializable");
    }
  }

  static std::string number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return format_float(d);
  }

  void newline(int depth) {
    if (!style_.pretty) return;
    put("\n");
    for (int i = 0; i < depth; ++i) put(style_.indent->view());
  }

  void list(const std::vector<Value>& items, int depth) {
    if (items.empty()) return put("[]");
    put("[");
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) put(style_.item_separator->view());
      newline(depth + 1);
      write(items[i], depth + 1);
    }
    newline(depth);
    put("]");
  }

  void dict(const Dict& dict, int depth) {
    if (dict.size() == 0) return put("{}");
    std::vector<std::pair<Value, Value>> sorted;
    if (style_.sort_keys) {
      heap_.budget().bulk(dict.size());
      sorted = dict.entries();
      std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
        return value_less(a.first, b.first, heap_.budget());
      });
    }
    put("{");
    bool first = true;
    for (const auto& [key, value] : style_.sort_keys ? sorted : dict.entries()) {
      if (!first) put(style_.item_separator->view());
      first = false;
      newline(depth + 1);
      write_key(key);
      put(style_.key_separator->view());
      write(value, depth + 1);
    }
    newline(depth);
    put("}");
  }

  void write_key(const Value& key) {
    switch (key.type()) {
      case Type::kText:
        return string(*key.text());
      case Type::kNone:
        return put("\"null\"");
      case Type::kBool:
        return put(key.boolean() ? "\"true\"" : "\"false\"");
      case Type::kInt:
        return put("\"" + format_integer(key.integer()) + "\"");
      case Type::kFloat:
        return put("\"" + number(key.real()) + "\"");
      default:
        fail(std::string("keys must be str, int, float, bool or None, not ") + type_name(key));
    }
  }

  void string(const Text& text) {
    put("\"");
    text.for_each_run(0, text.size(), [&](std::string_view piece, bool trusted) { escaped(piece, trusted); });
    put("\"");
  }

  void escaped(std::string_view piece, bool trusted) {
    size_t plain = 0;
    for (size_t i = 0; i < piece.size();) {
      const auto byte = static_cast<unsigned char>(piece[i]);
      const CodePoint c = byte < 0x80 ? CodePoint{byte, 1} : decode_at(piece, i);
      const bool unicode = style_.ensure_ascii && (c.value > 0x7E || c.value < 0);
      if (byte >= 0x20 && byte != '"' && byte != '\\' && !unicode) {
        i += c.bytes;
        continue;
      }
      out_.append(piece.substr(plain, i - plain), trusted);
      out_.append(escape(c.value < 0 ? 0xFFFD : c.value), trusted);
      i += c.bytes;
      plain = i;
    }
    out_.append(piece.substr(plain), trusted);
  }

  static std::string escape(int32_t c) {
    switch (c) {
      case '"':
        return "\\\"";
      case '\\':
        return "\\\\";
      case '\n':
        return "\\n";
      case '\r':
        return "\\r";
      case '\t':
        return "\\t";
      case '\b':
        return "\\b";
      case '\f':
        return "\\f";
      default:
        break;
    }
    const auto unit = [](int32_t u) {
      char hex[16];
      std::snprintf(hex, sizeof hex, "\\u%04x", static_cast<unsigned>(u));
      return std::string(hex);
    };
    if (c < 0x10000) return unit(c);
    return unit(0xD800 + ((c - 0x10000) >> 10)) + unit(0xDC00 + ((c - 0x10000) & 0x3FF));
  }

  const JsonStyle& style_;
  Heap& heap_;
  TextBuilder out_;
};

}  // namespace

Value value_from_json(const Json& json, Heap& heap) { return convert(json, heap, 0); }

Value messages_from_json(const Json& json, Heap& heap) {
  const Value value = convert(json, heap, 0);
  if (!value.is_list()) return value;
  const TextPtr role = make_text("role", false, &heap.budget());
  for (const Value& message : value.list()->items) {
    const Value* written = message.is_dict() ? message.dict()->find(role) : nullptr;
    if (written == nullptr || !written->is_text()) continue;
    const std::string_view name = written->view();
    if (std::find(std::begin(kRoles), std::end(kRoles), name) != std::end(kRoles))
      message.dict()->set(role, make_text(name, true, &heap.budget()), heap.budget());
  }
  return value;
}

Value value_from_json_text(const Text& text, Heap& heap) {
  heap.budget().bulk(text.size());
  const Json json = Json::parse(text.view(), nullptr, false);
  if (json.is_discarded()) fail("from_json: the text is not valid JSON");
  return convert(json, heap, 0);
}

TextPtr value_to_json(const Value& value, const JsonStyle& style, Heap& heap) {
  return JsonWriter(style, heap).run(value);
}

}  // namespace omnibus::jinja
