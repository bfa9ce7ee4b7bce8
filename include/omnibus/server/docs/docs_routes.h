// GET /openapi.json and GET /docs: the API described from what the server really has: its route table and the
// field tables that its handlers check bodies with. Only the words are written down elsewhere, in
// src/server/docs/*.json.
#pragma once

#include <string>

#include "omnibus/server/http/route_table.h"

namespace omnibus {

struct DocsConfig {
  std::string version;
  std::string model;           // a name that requests may use, for examples
  bool keyed = false;          // there are keys: what they open asks for one
  bool loopback_bind = false;  // Scope::kMetrics is open then
};

// Adds both routes and describes all that `routes` has by then: to be called last.
void add_docs_routes(const DocsConfig& config, RouteTable& routes);

}  // namespace omnibus
