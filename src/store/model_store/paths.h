// Files of the store: opened beneath its folder without following links, written whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "omnibus/base/common/fd.h"
#include "omnibus/base/common/status.h"

namespace omnibus {

// Opens `relative` for reading; it must lie in `folder` without "..", absolute links or any symbolic link on
// the way (openat2 with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS). NOT_FOUND when there is none.
StatusOr<Fd> open_beneath(const std::string& folder, const std::string& relative);

// A folder of `folder`, under the same rule. `create`: makes it and those on the way, for the owner alone.
StatusOr<Fd> open_folder_beneath(const std::string& folder, const std::string& relative, bool create);

// Writes the file `name` of a folder: beside it first, flushed to the disk, then renamed over it.
Status write_file_in(const Fd& folder, const std::string& name, std::string_view text);

// Writes `text` beside `path`, flushes it to the disk and renames it over `path`.
Status write_file_atomically(const std::string& path, std::string_view text);

// Creates `path` and its parents, for the owner alone.
Status make_folders(const std::string& path);

std::string errno_text(std::string_view what, const std::string& path);

}  // namespace omnibus
