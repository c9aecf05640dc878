// SPDX-License-Identifier: Apache-2.0
// Tables of numbers, some of them missing, of words for labels, of images with them, and of labels
// with several classes.
#include <cstdlib>

#include "tests/fuzz/source.h"

namespace mxtrain::fuzz {

std::vector<std::string> LargeInputs() {
  std::string wide = "y", rows = "y,a,b\n", words = "y,a,b\n";
  for (int i = 0; i < 50'000; ++i) wide += format(",c{}", i);
  for (int i = 0; i < 50'000; ++i) rows += "1,2,3\n";
  for (int i = 0; i < 20'000; ++i) words += format("w{};v{},2,x.png\n", i, i);
  std::string quotes = "y,a,b\n", holes = "y,a,b\n";
  for (int i = 0; i < 20'000; ++i) quotes += "\"w\"\"w\",\"1\",\"2\n\"\n";
  for (int i = 0; i < 50'000; ++i) holes += i % 2 ? "1,,3\n" : ",NA,3\n";
  return {wide + "\n",
          rows,
          words,
          quotes,
          holes,
          "y,a,b\n\"" + std::string(400'000, '"') + ",1,2\n",
          std::string(400'000, ',') + "\n",
          std::string(400'000, '\n')};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain::fuzz;
  using mxtrain::Kwargs;
  Scratch().Write("table.csv", TextOf(data, size));
  const std::string path = Scratch().path("table.csv");
  ReadAll("csv", {{"path", path}, {"label_columns", "0"}});
  ReadAll("csv", {{"path", path},
                  {"data_fields", "(x=a, x=b)"},
                  {"label_fields", "(label=y)"},
                  {"holdout", "0.25"}});
  ReadAll("csv", {{"path", path},
                  {"data_fields", "(image=b)"},
                  {"label_fields", "(label=y)"},
                  {"picture_fields", "(image)"}});
  ReadAll("csv", {{"path", path},
                  {"data_fields", "(x=a)"},
                  {"label_fields", "(label=y)"},
                  {"label_delim", ";"}});
  const Kwargs columns = {
      {"path", path}, {"data_fields", "(x=a, x=b)"}, {"label_fields", "(label=y)"}};
  for (Kwargs more : {Kwargs{{"missing", "drop"}, {"key", "a"}, {"delimiter", ";"}},
                      Kwargs{{"missing", "mean"},
                             {"field_means", "(x=1, x=2, label=0)"},
                             {"field_stds", "(x=1, x=3, label=2)"},
                             {"key", "#"}},
                      Kwargs{{"missing", "mean"},
                             {"missing_words", "(?, 0)"},
                             {"group", "b"},
                             {"holdout", "0.3"},
                             {"field_means", "(x=1, x=2, label=0)"},
                             {"field_stds", "(x=1, x=0, label=2)"},
                             {"field_transforms", "(x=quantile 0 -1 1 0 5 1, x=, label=log)"}},
                      Kwargs{{"missing", "drop"}, {"field_classes", "(label=cat, label=dog)"}}}) {
    more.insert(more.end(), columns.begin(), columns.end());
    ReadAll("csv", more);
  }
  ReadAll("csv", {{"path", path}, {"label_fields", "(label=y, other=a)"}, {"missing", "drop"}});
  return 0;
}
