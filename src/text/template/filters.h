// The filters (x|name) and tests (x is name) of the language.
#pragma once

#include <string_view>

#include "object.h"

namespace omnibus::jinja {

class Interpreter;

using FilterBody = Value (*)(Interpreter&, const Value& input, const CallArgs&);
using TestBody = bool (*)(Interpreter&, const Value& input, const CallArgs&);

// nullptr when there is no such filter or test.
FilterBody find_filter(std::string_view name);
TestBody find_test(std::string_view name);

struct NamedFilter {
  std::string_view name;
  FilterBody body;
};
// One table per source file; find_filter() searches them all.
struct FilterTable {
  const NamedFilter* begin;
  const NamedFilter* end;
};
FilterTable text_filters();
FilterTable sequence_filters();
FilterTable selection_filters();
FilterTable number_filters();

}  // namespace omnibus::jinja
