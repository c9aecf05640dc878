// SPDX-License-Identifier: Apache-2.0
// Lists of images: with one label, several, or any number of classes, and those of MXNet.
#include <cstdlib>

#include "tests/fuzz/source.h"

namespace mxtrain::fuzz {

std::vector<std::string> LargeInputs() {
  std::string rows, classes, long_line = "a.png";
  for (int i = 0; i < 50'000; ++i) rows += format("a{}.png c{}\n", i, i % 1000);
  for (int i = 0; i < 20'000; ++i) classes += format("a{}.png\tc{};d{}\n", i, i, i);
  for (int i = 0; i < 100'000; ++i) long_line += " 1";
  return {rows, classes, long_line + "\n", std::string(400'000, '\t') + "\n",
          std::string(400'000, '\n')};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain::fuzz;
  Scratch().Write("list.txt", TextOf(data, size));
  const std::string path = Scratch().path("list.txt");
  ReadAll("list", {{"path", path}});
  ReadAll("list", {{"path", path}, {"label_delim", ";"}});
  ReadAll("list", {{"path", path}, {"classes", "(cat, dog)"}, {"holdout", "0.5"}});
  return 0;
}
