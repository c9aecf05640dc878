// SPDX-License-Identifier: Apache-2.0
#include "app/report/result_file.h"

#include <cerrno>
#include <iostream>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/stream_path.h"

namespace mxtrain::report {

ResultFile::ResultFile(std::string path)
    : path_(std::move(path)), stream_(path_.empty() ? std::cout : special_) {
  if (ToStdout()) return;
  if (!IsStream(path_)) {
    file_.emplace(path_);
    return;
  }
  errno = 0;
  // A file behind a stream may hold what other programs have written.
  special_.open(path_, std::ios::binary | std::ios::app);
  Check(special_.is_open());
}

void ResultFile::Check(bool good) const {
  if (good) return;
  Throw(ErrorKind::kFileSystem, "cannot write {}{}", ToStdout() ? "the results to stdout" : path_,
        errno ? ": " + ReasonOf(errno) : "");
}

void ResultFile::Write(std::string_view bytes) {
  if (file_) return file_->Write(bytes);
  errno = 0;
  Check(static_cast<bool>(stream_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))));
}

void ResultFile::Finish() {
  if (file_) return file_->Commit();
  errno = 0;
  Check(static_cast<bool>(stream_.flush()));
  if (ToStdout()) return;
  special_.close();
  Check(!special_.fail());
}

}  // namespace mxtrain::report
