// Figures and tables as the program prints them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace omnibus {

std::string mebibytes(int64_t bytes);    // "92.1 MiB"
std::string short_count(int64_t count);  // "134.5 M"

// Columns padded to their widest cell, two spaces apart, no trailing blanks.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace omnibus
