// SPDX-License-Identifier: Apache-2.0
// CIFAR's binary files, and their names of classes: the records, bytes 0xff 0xfe between, the
// names.
#include <cstdlib>

#include "tests/fuzz/source.h"

namespace mxtrain::fuzz {

std::vector<std::string> LargeInputs() {
  return {std::string(3073 * 100, '\1'),
          std::string(3073, '\1') + "\xff\xfe" + std::string(200'000, '\n')};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain::fuzz;
  const std::string_view bytes = TextOf(data, size);
  const size_t border = std::min(bytes.rfind("\xff\xfe"), size);
  for (const char* name : {"test_batch.bin", "test.bin"})
    Scratch().Write(name, bytes.substr(0, border));
  for (const char* name : {"batches.meta.txt", "fine_label_names.txt"})
    Scratch().Write(name, bytes.substr(std::min(border + 2, size)));
  for (const char* kind : {"cifar10", "cifar100"})
    ReadAll(kind, {{"path", Scratch().path()}, {"split", "test"}});
  return 0;
}
