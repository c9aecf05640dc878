#include "app/report/result_file.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iostream>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::report {
namespace {

namespace fs = std::filesystem;

std::string BesideOf(const std::string& path) {
  std::error_code none;
  const bool special = fs::exists(path, none) && !fs::is_regular_file(path, none);
  return special || path.empty() ? path : format("{}.tmp-{}", path, getpid());
}

}  // namespace

ResultFile::ResultFile(std::string path) : path_(std::move(path)), written_(BesideOf(path_)), out_(path_.empty() ? std::cout : file_) {
  if (ToStdout()) return;
  errno = 0;
  file_.open(written_, std::ios::binary | std::ios::trunc);
  Check(file_.is_open());
}

ResultFile::~ResultFile() {
  if (ToStdout() || finished_ || written_ == path_) return;
  file_.close();
  std::error_code ignored;
  fs::remove(written_, ignored);
}

void ResultFile::Check(bool good) const {
  if (good) return;
  Throw(ErrorKind::kFileSystem, "cannot write {}{}", ToStdout() ? "the results to stdout" : path_, errno ? ": " + ReasonOf(errno) : "");
}

void ResultFile::Write(std::string_view bytes) {
  errno = 0;
  Check(static_cast<bool>(out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))));
}

void ResultFile::Finish() {
  errno = 0;
  Check(static_cast<bool>(out_.flush()));
  if (ToStdout()) return;
  file_.close();
  Check(!file_.fail());
  std::error_code error;
  if (written_ != path_) fs::rename(written_, path_, error);
  if (error) Throw(ErrorKind::kFileSystem, "cannot write {}: {}", path_, error.message());
  finished_ = true;
}

}  // namespace mxtrain::report
