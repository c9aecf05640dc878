#pragma once
// TensorBoard's event files: TFRecord frames (length, its checksum, bytes, their checksum) that hold messages `Event` of
// tensorflow/core/util/event.proto, of which the few fields that are needed here are written by hand.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mxtrain/base/file.h"

namespace mxtrain::report {

// CRC-32C (Castagnoli): RFC 3720, appendix B.4.
uint32_t Crc32c(std::string_view bytes);

// One file of a folder of ours, in which TensorBoard takes all files for one run. Events reach the disk with Flush, at the latest.
class EventFile {
 public:
  // `first_step`: steps that were done before; TensorBoard drops what older files of the folder hold of later ones. Throws kFileSystem.
  EventFile(const std::string& folder, int64_t first_step);

  // A tag "train/loss" stands under the heading "train".
  void AddScalar(const std::string& tag, int64_t step, double value);
  void AddPng(const std::string& tag, int64_t step, std::string_view png);  // throws kData for bytes that are no PNG
  void Flush();                                                             // throws kFileSystem: a full disk ends the run
  const std::string& path() const { return file_->path(); }

 private:
  void Write(const std::string& event);
  void AddValue(int64_t step, const std::string& value);
  std::optional<FileAppender> file_;  // there after construction
  std::string pending_;               // what Flush writes
};

}  // namespace mxtrain::report
