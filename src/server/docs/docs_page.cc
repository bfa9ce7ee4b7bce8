#include "docs_page.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "docs_data.h"
#include "http/csp_hash.h"

namespace omnibus {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::string joined(const Json& list, std::string_view separator) {
  std::string out;
  for (const Json& item : list) {
    if (item.is_null() || item == "null") continue;  // null is said once, above all tables
    if (!out.empty()) out += separator;
    out += item.is_string() ? item.get<std::string>() : dump_json(item);
  }
  return out;
}

// "integer", "string or array of integer", "\"low\", \"high\"": what a schema lets through, in words.
std::string type_words(const Json& schema) {
  for (const char* choice : {"anyOf", "oneOf"}) {
    const auto it = schema.find(choice);
    if (it == schema.end()) continue;
    std::string out;
    for (const Json& part : *it) {
      const std::string words = type_words(part);
      if (words == "null") continue;
      out += (out.empty() ? "" : " or ") + words;
    }
    return out;
  }
  if (const auto ref = schema.find("$ref"); ref != schema.end()) {
    const std::string name = ref->get<std::string>();
    return name.substr(name.rfind('/') + 1);
  }
  if (const auto values = schema.find("enum"); values != schema.end()) {
    std::string out;
    for (const Json& value : *values) {
      if (!value.is_null()) out += (out.empty() ? "" : ", ") + dump_json(value);
    }
    return out.empty() ? "nothing" : out;
  }
  const auto type = schema.find("type");
  if (type == schema.end()) return "any";
  std::string out = type->is_array() ? joined(*type, " or ") : type->get<std::string>();
  if (const auto items = schema.find("items"); items != schema.end()) out += " of " + type_words(*items);
  return out;
}

// "0 ... 2", "at least 1"; of lengths with their unit.
std::string bound_words(const Json& schema) {
  struct Names {
    const char* min;
    const char* max;
    const char* unit;
  };
  constexpr std::array<Names, 4> kNames = {{{"minimum", "maximum", ""},
                                            {"minLength", "maxLength", " bytes"},
                                            {"minItems", "maxItems", " items"},
                                            {"minProperties", "maxProperties", " keys"}}};
  if (schema.contains("format")) return "64 bits";
  for (const Names& names : kNames) {
    const auto min = schema.find(names.min);
    const auto max = schema.find(names.max);
    if (min != schema.end() && max != schema.end()) {
      return fmt::format("{} … {}{}", dump_json(*min), dump_json(*max), names.unit);
    }
    if (min != schema.end()) return fmt::format("≥ {}{}", dump_json(*min), names.unit);
    if (max != schema.end()) return fmt::format("≤ {}{}", dump_json(*max), names.unit);
  }
  return {};
}

class Page {
 public:
  explicit Page(const Json& openapi) : openapi_(openapi) {}

  std::string html();

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  template <typename Visit>
  void for_each_operation(const std::string& group, const Visit& visit) const;

  const Json& resolve(const Json& schema) const;
  void contents();
  void operation(const std::string& path, const std::string& method, const Json& operation);
  void fields(const Json& schema, const std::string& prefix);
  void field_rows(const Json& schema, const std::string& prefix, bool explained);
  void quiet_fields(const Json& schema, const char* mark, const char* title);
  void answers(const Json& responses);
  void example(const std::string& path, const std::string& method, const Json& operation);

  const Json& openapi_;
  std::string out_;
};

const Json& Page::resolve(const Json& schema) const {
  const auto ref = schema.find("$ref");
  if (ref == schema.end()) return schema;
  const std::string name = ref->get<std::string>();
  return openapi_["components"]["schemas"].at(name.substr(name.rfind('/') + 1));
}

template <typename Visit>
void Page::for_each_operation(const std::string& group, const Visit& visit) const {
  for (const auto& [path, methods] : openapi_["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      if (operation["tags"][0] == group) visit(path, method, operation);
    }
  }
}

std::string upper(std::string text) {
  for (char& c : text) c = (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

void Page::contents() {
  add("<nav aria-label=\"Routes\">\n");
  for (const Json& tag : openapi_["tags"]) {
    const std::string group = tag["name"];
    add("<h2>{}</h2>\n<ul>\n", escaped(group));
    for_each_operation(group, [&](const std::string& path, const std::string& method, const Json& operation) {
      add("<li><a href=\"#{}\"><b>{}</b> {}</a></li>\n", escaped(text_of(operation, "operationId")),
          upper(method), escaped(path));
    });
    add("</ul>\n");
  }
  add("</nav>\n");
}

void Page::field_rows(const Json& schema, const std::string& prefix, bool explained) {
  const Json required = schema.value("required", Json::array());
  for (const auto& [name, field] : schema["properties"].items()) {
    if (field.contains("x-omnibus") == explained) continue;
    const bool needed = std::find(required.begin(), required.end(), name) != required.end();
    const auto standard = field.find("default");
    add("<tr><th scope=\"row\"><code>{}{}</code>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escaped(prefix), escaped(name), needed ? " <em>required</em>" : "", escaped(type_words(field)),
        escaped(bound_words(field)), standard == field.end() ? "" : escaped(dump_json(*standard)),
        escaped(text_of(field, "description")));
    if (field.contains("properties")) field_rows(field, prefix + name + ".", explained);
  }
}

// Fields that need no row each: one line of names.
void Page::quiet_fields(const Json& schema, const char* mark, const char* title) {
  std::string names;
  const auto add_names = [&](const auto& self, const Json& object, const std::string& prefix) -> void {
    for (const auto& [name, field] : object["properties"].items()) {
      if (text_of(field, "x-omnibus") == mark) {
        names +=
            fmt::format("{}<code>{}{}</code>", names.empty() ? "" : ", ", escaped(prefix), escaped(name));
      } else if (field.contains("properties")) {
        self(self, field, prefix + name + ".");
      }
    }
  };
  add_names(add_names, schema, "");
  if (!names.empty()) add("<p><b>{}</b> {}</p>\n", title, names);
}

void Page::fields(const Json& schema, const std::string& prefix) {
  if (!schema.contains("properties") || schema["properties"].empty()) return;
  add("<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">field</th><th scope=\"col\">type</th>"
      "<th scope=\"col\">bounds</th><th scope=\"col\">default</th><th "
      "scope=\"col\"></th></tr></thead>\n<tbody>\n");
  field_rows(schema, prefix, true);
  add("</tbody>\n</table></div>\n");
  quiet_fields(schema, "ignored", "Without effect, named in x-omnibus-ignored-fields:");
  quiet_fields(schema, "unsupported", "Not supported, an error unless the value asks for nothing:");
}

void Page::answers(const Json& responses) {
  add("<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">status</th><th scope=\"col\">answer</th>"
      "<th scope=\"col\"></th></tr></thead>\n<tbody>\n");
  for (const auto& [status, response] : responses.items()) {
    std::string shapes;
    const Json content = response.value("content", Json::object());
    for (const auto& [media, described] : content.items()) {
      const auto item = described.find("x-item-schema");
      const Json& schema = item != described.end() ? *item : described["schema"];
      std::string shape = type_words(schema);
      if (const auto ref = schema.find("$ref"); ref != schema.end()) {
        shape = fmt::format("<a href=\"#schema-{0}\">{0}</a>", escaped(shape));
      } else {
        shape = escaped(shape);
      }
      shapes += fmt::format("{}{} <small>{}{}</small>", shapes.empty() ? "" : "<br>", shape, escaped(media),
                            item != described.end() ? ", each event" : "");
    }
    add("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>\n", escaped(status), shapes,
        escaped(text_of(response, "description")));
  }
  add("</tbody>\n</table></div>\n");
}

void Page::example(const std::string& path, const std::string& method, const Json& operation) {
  std::string command = "curl ";
  if (method == "head") command += "-I ";
  if (method == "delete") command += "-X DELETE ";
  command += "http://127.0.0.1:8000" + path;
  if (!operation["security"].empty()) command += " \\\n  -H \"Authorization: Bearer $OMNIBUS_KEY\"";
  if (const auto body = operation.find("requestBody"); body != operation.end()) {
    const Json& content = (*body)["content"].begin().value();
    if (content.contains("example")) {
      command += " \\\n  -H 'Content-Type: application/json' -d '" +
                 content["example"].dump(2, ' ', false, Json::error_handler_t::replace) + "'";
    } else {
      command += " --data-binary @FILE";
    }
  } else if (method == "post") {
    command += " -X POST";
  }
  add("<pre><code>{}</code></pre>\n", escaped(command));
}

void Page::operation(const std::string& path, const std::string& method, const Json& operation) {
  const std::string id = escaped(text_of(operation, "operationId"));
  add("<section id=\"{}\" aria-labelledby=\"{}-title\">\n<h3 id=\"{}-title\"><b>{}</b> "
      "<code>{}</code></h3>\n",
      id, id, id, upper(method), escaped(path));
  add("<p>{}</p>\n", escaped(text_of(operation, "summary")));
  if (operation.contains("description")) add("<p>{}</p>\n", escaped(text_of(operation, "description")));
  if (!operation["security"].empty()) add("<p><small>Needs a key.</small></p>\n");
  example(path, method, operation);
  if (const auto body = operation.find("requestBody"); body != operation.end()) {
    fields(resolve((*body)["content"].begin().value()["schema"]), "");
  }
  answers(operation["responses"]);
  add("</section>\n");
}

std::string Page::html() {
  add("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>omnibus: "
      "API</title>\n"
      "<style>{}</style>\n</head>\n<body>\n<header>\n<h1>omnibus {}</h1>\n",
      kDocsStyle, escaped(text_of(openapi_["info"], "version")));
  add("<p>{}</p>\n<p>The same for programs: <a href=\"/openapi.json\">/openapi.json</a></p>\n</header>\n",
      escaped(text_of(openapi_["info"], "description")));
  contents();
  add("<main>\n");
  for (const Json& tag : openapi_["tags"]) {
    const std::string group = tag["name"];
    add("<h2>{}</h2>\n", escaped(group));
    for_each_operation(group, [&](const std::string& path, const std::string& method, const Json& described) {
      operation(path, method, described);
    });
  }
  add("<h2>Shapes</h2>\n");
  for (const auto& [name, schema] : openapi_["components"]["schemas"].items()) {
    if (name.ends_with("_body")) continue;
    add("<section id=\"schema-{0}\" aria-labelledby=\"schema-{0}-title\">\n<h3 "
        "id=\"schema-{0}-title\">{0}</h3>\n",
        escaped(name));
    if (schema.contains("description")) add("<p>{}</p>\n", escaped(text_of(schema, "description")));
    fields(schema, "");
    add("</section>\n");
  }
  add("</main>\n</body>\n</html>\n");
  return std::move(out_);
}

}  // namespace

std::string docs_page_html(const Json& openapi) { return Page(openapi).html(); }

std::string docs_page_policy() {
  return "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src " +
         csp_hash(kDocsStyle);
}

}  // namespace omnibus
