// DocNotes: the words of the documentation: what a route, a field, a shape is for. They stand in openai.json
// and its neighbours, one file per door, embedded at build time:
//   about    what the API is, in the first file
//   group    heading of the door's routes, unless a route has its own
//   errors   schema of the body of the door's errors
//   routes   {"METHOD /path": {same_as? (another route of the file, whose note holds where this one says
//   nothing), summary, about?, group?, answers: [{status?, media?, schema?, end?, about?}], errors?:
//   [status],
//            required?: [field], body?: {schema, media?}, example?, fields?: {name: field note}}}
//   fields   {name: {about, default?, schema?}}: `schema` adds to what the field's rule says by itself
//   schemas  components of the document
// A field note is looked for in the route, then in its door's file, then in the first file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "omnibus/server/http/json_body.h"

namespace omnibus {

class DocNotes {
 public:
  // The embedded files.
  static const DocNotes& all();

  std::string about() const;

  struct RouteNote {
    const Json* door = nullptr;
    const Json* route = nullptr;  // null: nothing is written about it
  };
  RouteNote find_route(std::string_view method, std::string_view pattern) const;
  // Empty object when nothing is written about it.
  const Json& find_field(const RouteNote& note, std::string_view name) const;
  // All schemas of all doors, as one object.
  Json schemas() const;

 private:
  explicit DocNotes(const std::vector<std::string_view>& texts);

  std::vector<Json> doors_;
};

}  // namespace omnibus
