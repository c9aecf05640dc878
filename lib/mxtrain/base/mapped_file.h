// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file's bytes without reading them first: the system loads the pages that are touched.
#include <cstddef>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// A regular file mapped for reading. Immutable: any thread may read. Whoever truncates the file
// meanwhile ends the process (SIGBUS); files replaced by renaming, as FileWriter does, stay whole.
class MXTRAIN_API MappedFile {
 public:
  // Throws kFileSystem with path and reason.
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return {data_, size_}; }

 private:
  std::string path_;
  const char* data_ = nullptr;  // null for an empty file, which cannot be mapped
  size_t size_ = 0;
};

}  // namespace mxtrain
