#include "filters.h"

namespace omnibus::jinja {

FilterBody find_filter(std::string_view name) {
  for (const FilterTable& table : {text_filters(), sequence_filters(), selection_filters(), number_filters()})
    for (const NamedFilter* filter = table.begin; filter != table.end; ++filter)
      if (filter->name == name) return filter->body;
  return nullptr;
}

}  // namespace omnibus::jinja
