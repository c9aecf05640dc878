#pragma once
// TensorBoard's event files: TFRecord frames (length, its checksum, bytes, their checksum) that hold messages `Event` of
// tensorflow/core/util/event.proto, of which the few fields that are needed here are written by hand.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace mxtrain::report {

// CRC-32C (Castagnoli): RFC 3720, appendix B.4.
uint32_t Crc32c(std::string_view bytes);

// One file of a folder, in which TensorBoard takes all files for one run. Events reach the disk with Flush.
class EventFile {
 public:
  // `first_step`: steps that were done before; TensorBoard drops what older files of the folder hold of later ones. Throws kFileSystem.
  EventFile(const std::string& folder, int64_t first_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // A tag "train/loss" stands under the heading "train".
  void AddScalar(const std::string& tag, int64_t step, double value);
  void AddPng(const std::string& tag, int64_t step, std::string_view png);  // throws kData for bytes that are no PNG
  void Flush();                                                             // throws kFileSystem: a full disk ends the run
  const std::string& path() const { return path_; }

 private:
  void Write(const std::string& event);
  void AddValue(int64_t step, const std::string& value);
  std::string path_;
  std::FILE* file_;
};

}  // namespace mxtrain::report
