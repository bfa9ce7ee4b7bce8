#include "notes.h"

#include <utility>

#include "omnibus/base/common/check.h"

#include "docs_data.h"

namespace omnibus {
namespace {

const Json& no_note() {
  static const Json empty = Json::object();
  return empty;
}

// What stands under `key`, then under `name`; null when there is no such thing.
const Json* entry(const Json& object, const char* key, const std::string& name) {
  const auto group = object.find(key);
  if (group == object.end()) return nullptr;
  const auto it = group->find(name);
  return it == group->end() ? nullptr : &*it;
}

// A route that is the same as another one says only where it differs.
void fill_same_as(Json& door) {
  Json& routes = door["routes"];
  for (auto& [name, route] : routes.items()) {
    while (route.contains("same_as")) {
      Json whole = routes.value(route["same_as"].get<std::string>(), Json::object());
      route.erase("same_as");
      whole.update(route);
      route = std::move(whole);
    }
  }
}

}  // namespace

DocNotes::DocNotes(const std::vector<std::string_view>& texts) {
  for (const std::string_view text : texts) {
    doors_.push_back(Json::parse(text, nullptr, /*allow_exceptions=*/false));
    OMNIBUS_CHECK(doors_.back().is_object(), "a file of src/server/docs is no JSON object");
    fill_same_as(doors_.back());
  }
}

const DocNotes& DocNotes::all() {
  static const DocNotes notes({kDocNotes.begin(), kDocNotes.end()});
  return notes;
}

std::string DocNotes::about() const { return doors_.front().value("about", ""); }

DocNotes::RouteNote DocNotes::find_route(std::string_view method, std::string_view pattern) const {
  const std::string name = std::string(method) + " " + std::string(pattern);
  for (const Json& door : doors_) {
    if (const Json* route = entry(door, "routes", name)) return {&door, route};
  }
  return {&doors_.front(), nullptr};
}

const Json& DocNotes::find_field(const RouteNote& note, std::string_view name) const {
  const std::string key(name);
  if (note.route != nullptr) {
    if (const Json* field = entry(*note.route, "fields", key)) return *field;
  }
  for (const Json* door : {note.door, &doors_.front()}) {
    if (const Json* field = entry(*door, "fields", key)) return *field;
  }
  return no_note();
}

Json DocNotes::schemas() const {
  Json all = Json::object();
  for (const Json& door : doors_) {
    const auto it = door.find("schemas");
    if (it != door.end()) all.update(*it);
  }
  return all;
}

}  // namespace omnibus
