// A POST body as the fields of a table: the first step of every handler that takes one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "omnibus/server/http/http_message.h"

#include "field_rule.h"

namespace omnibus {

template <typename Fields>
struct ParsedBody {
  Fields fields;
  std::vector<std::string> ignored;  // names of what had no effect
};

// `initial`: what the fields are that the body leaves out.
template <typename Fields>
StatusOr<ParsedBody<Fields>> parse_body(const HttpRequest& request, std::span<const Field<Fields>> table,
                                        const FieldOptions& options, Fields initial = {}) {
  OMNIBUS_ASSIGN_OR_RETURN(Json body, parse_json(request.body));
  if (!body.is_object()) return absl::InvalidArgumentError("The body must be a JSON object");
  ParsedBody<Fields> parsed{std::move(initial), {}};
  OMNIBUS_RETURN_IF_ERROR(take_fields(body, table, options, parsed.fields, parsed.ignored));
  return parsed;
}

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Says in the head of the answer what had no effect.
inline void add_ignored_fields(HttpHeaders& headers, const std::vector<std::string>& ignored) {
  if (!ignored.empty()) headers.emplace_back("x-omnibus-ignored-fields", ignored_fields_header(ignored));
}

}  // namespace omnibus
