// SPDX-License-Identifier: Apache-2.0
#include "app/fetch/sha256.h"

#include <vector>

#include "mxtrain/base/file.h"

namespace mxtrain::fetch {

std::string Sha256OfText(std::string_view text) {
  Sha256 sum;
  sum.Add(text);
  return sum.Hex();
}

std::string Sha256OfFile(const std::string& path) {
  Sha256 sum;
  FileReader file(path);
  std::vector<char> block(size_t{1} << 20);
  while (const size_t count = file.Read(block)) sum.Add({block.data(), count});
  return sum.Hex();
}

}  // namespace mxtrain::fetch
