// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain {

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  const FileDescriptor file(path_, O_RDONLY | O_NONBLOCK, "open");
  const auto fail = [this](const std::string& reason) {
    Throw(ErrorKind::kFileSystem, "cannot map {}: {}", path_, reason);
  };
  struct stat info {};
  if (fstat(file.get(), &info) != 0) fail(ReasonOf(errno));
  if (!S_ISREG(info.st_mode)) fail("it is not a file");
  size_ = static_cast<size_t>(info.st_size);
  if (size_ == 0) return;
  void* const data = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) fail(ReasonOf(errno));
  data_ = static_cast<const char*>(data);
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<char*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

}  // namespace mxtrain
