// SPDX-License-Identifier: Apache-2.0
#pragma once
// Zip archives whose entries are not compressed, with the sizes of zip64 (PKWARE's APPNOTE.TXT).
// Private to ndarray.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace mxtrain {

class ZipArchive {
 public:
  // Names of entries are bytes of any kind.
  struct Entry {
    std::string_view bytes;  // as they stand in the archive
    uint64_t size = 0;       // uncompressed
    uint32_t crc = 0;
    uint16_t flags = 0, method = 0;
  };

  // `bytes` must outlive it. Throws kData if they are not an archive, or for entries that overlap
  // or share a name.
  explicit ZipArchive(std::string_view bytes);
  const std::map<std::string_view, Entry>& entries() const { return entries_; }
  // Throws kData if there is no such entry, its checksum is wrong, or it is compressed or
  // encrypted.
  std::string_view Read(std::string_view name) const;

 private:
  std::map<std::string_view, Entry> entries_;
};

}  // namespace mxtrain
