// SPDX-License-Identifier: Apache-2.0
#include "app/report/text_table.h"

#include <doctest/doctest.h>

namespace mxtrain::report {
namespace {

TEST_CASE("tables: columns are aligned, and fit narrow terminals") {
  TextTable table({{"layer"}, {"operator", 0, true}, {"parameters", 12}, {"note", 0, true}});
  table.Add({"conv0", "Convolution", "1234", "first"});
  table.Add({"a_long_name", "Flatten", "0", ""});
  const std::string wide =
      "layer        operator       parameters  note\n"
      "conv0        Convolution          1234  first\n"
      "a_long_name  Flatten                 0  \n";
  CHECK(table.Lines(100) == wide);
  CHECK(table.Lines(45) == wide);
  CHECK(table.Lines(44) ==
        "layer conv0\n"
        "  operator    Convolution\n"
        "  parameters  1234\n"
        "  note        first\n"
        "layer a_long_name\n"
        "  operator    Flatten\n"
        "  parameters     0\n"
        "  note        \n");
  for (int i = 0; i < 3; ++i) table.Add({"more", "Flatten", "0", "x"});
  CHECK(
      table.Lines(40).starts_with("layer\n"
                                  "  operator       parameters  note\n"
                                  "conv0\n"
                                  "  Convolution          1234  first\n"
                                  "a_long_name\n"));
}

}  // namespace
}  // namespace mxtrain::report
