// SPDX-License-Identifier: Apache-2.0
#pragma once
// TensorBoard's event files: TFRecord frames (length, its checksum, bytes, their checksum) that
// hold messages `Event` of tensorflow/core/util/event.proto; the few fields needed here are encoded
// by hand.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mxtrain/base/file.h"

namespace mxtrain::report {

// CRC-32C (Castagnoli): RFC 3720, appendix B.4.
uint32_t Crc32c(std::string_view bytes);

// One file in a folder of our own; TensorBoard treats all files of a folder as one run. Flush
// writes pending events to disk.
class EventFile {
 public:
  // `first_step`: steps done before; TensorBoard ignores later steps in older files of the folder.
  // Throws kFileSystem.
  EventFile(const std::string& folder, int64_t first_step);

  // A tag "train/loss" appears under the heading "train".
  void AddScalar(const std::string& tag, int64_t step, double value);
  // Throws kData unless the bytes are a PNG.
  void AddPng(const std::string& tag, int64_t step, std::string_view png);
  void Flush();  // throws kFileSystem: a full disk ends the run
  const std::string& path() const { return file_->path(); }

 private:
  void Write(const std::string& event);
  void AddValue(int64_t step, const std::string& value);
  std::optional<FileAppender> file_;  // set by the constructor
  std::string pending_;               // data for Flush
};

}  // namespace mxtrain::report
