// SPDX-License-Identifier: Apache-2.0
// IDX files: the images, a byte 0xff 0xfe between, the labels.
#include <cstdlib>

#include "tests/fuzz/source.h"

namespace mxtrain::fuzz {

std::vector<std::string> LargeInputs() {
  return {};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain::fuzz;
  const std::string_view bytes = TextOf(data, size);
  const size_t border = std::min(bytes.find("\xff\xfe"), size);
  Scratch().Write("t10k-images-idx3-ubyte", bytes.substr(0, border));
  Scratch().Write("t10k-labels-idx1-ubyte", bytes.substr(std::min(border + 2, size)));
  ReadAll("mnist", {{"path", Scratch().path()}, {"split", "test"}});
  return 0;
}
