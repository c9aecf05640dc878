// Tables of numbers, of images with words for labels, and of labels with several classes.
#include <cstdlib>

#include "tests/fuzz/source.h"

namespace mxtrain::fuzz {

std::vector<std::string> LargeInputs() {
  std::string wide = "y", rows = "y,a,b\n", words = "y,a,b\n";
  for (int i = 0; i < 50'000; ++i) wide += format(",c{}", i);
  for (int i = 0; i < 50'000; ++i) rows += "1,2,3\n";
  for (int i = 0; i < 20'000; ++i) words += format("w{};v{},2,x.png\n", i, i);
  return {wide + "\n", rows, words, std::string(400'000, ',') + "\n", std::string(400'000, '\n')};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain::fuzz;
  Scratch().Write("table.csv", TextOf(data, size));
  const std::string path = Scratch().path("table.csv");
  ReadAll("csv", {{"path", path}, {"label_columns", "0"}});
  ReadAll("csv", {{"path", path}, {"data_fields", "(x=a, x=b)"}, {"label_fields", "(label=y)"}, {"holdout", "0.25"}});
  ReadAll("csv", {{"path", path}, {"data_fields", "(image=b)"}, {"label_fields", "(label=y)"}, {"picture_fields", "(image)"}});
  ReadAll("csv", {{"path", path}, {"data_fields", "(x=a)"}, {"label_fields", "(label=y)"}, {"label_delim", ";"}});
  return 0;
}
