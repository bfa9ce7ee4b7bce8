// A TOML file as a flat list of settings. Arrays of values, nested tables and dotted keys are allowed; the
// path [serve.http] port is the key "http-port" of the command "serve", [bench.serve] seed the key "seed" of
// the command "bench serve".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/config/option_set.h"

namespace omnibus {

struct FileSetting {
  std::string command;  // "" : stands at top level
  std::string key;      // with dashes
  std::vector<std::string> values;
  int line = 0;
  bool is_table = false;  // says only that the table [key] stands here; its settings follow
};

// Errors name the path and the line. `commands`: whose tables there may be. A key that stands in [bench]
// itself has the command "bench".
StatusOr<std::vector<FileSetting>> read_config_file(const std::string& path,
                                                    std::span<const std::string> commands);
StatusOr<std::vector<FileSetting>> parse_config_text(std::string_view text, const std::string& path,
                                                     std::span<const std::string> commands);

}  // namespace omnibus
