// A regular file mapped read-only. The path's last component is resolved beneath its folder, so a symbolic
// link that leads out of the folder is refused, and so is everything that is not a regular file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "omnibus/base/common/status.h"

namespace omnibus::model_files {

class FileMapping {
 public:
  // Never blocks on a FIFO or a device. Errors name the path.
  static StatusOr<std::unique_ptr<FileMapping>> open(const std::string& path);
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  // Drops the whole pages inside [begin, end) from this process; they are read again when touched.
  void release(uint64_t begin, uint64_t end) const;

 private:
  FileMapping(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  const uint8_t* data_;
  size_t size_;
};

}  // namespace omnibus::model_files
