// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays of an ONNX model that lie in other files of its folder. Private to onnx.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mxtrain::onnx {

struct ExternalPlace {
  std::string location;
  int64_t offset = 0, length = -1;  // length: -1: not stated
  // An entry of TensorProto.external_data; unknown keys (checksum) are ignored. Throws kData.
  void Set(const std::string& key, const std::string& value, const std::string& what);
};

class ExternalData {
 public:
  explicit ExternalData(const std::string& folder) : folder_(folder) {}

  // Notes that `bytes` bytes at the place go to *to, which must live until ReadAll. Throws kData if
  // the place contradicts the number, or its file is not in the folder.
  void Add(const ExternalPlace& place, int64_t bytes, const std::string& what, std::string* to);
  // Reads everything noted, file by file. Throws kData if a file ends too early, or if arrays share
  // bytes so often that together they have more than four times those of their file.
  void ReadAll();

 private:
  struct Part {
    int64_t offset, bytes;
    std::string what;
    std::string* to;
  };
  std::string Locate(const std::string& location, const std::string& what) const;

  const std::string folder_;
  std::map<std::string, std::vector<Part>> parts_;  // by path
};

}  // namespace mxtrain::onnx
