// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/glob.h"

#include <doctest/doctest.h>

#include <vector>

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

TEST_CASE("stars and question marks match characters") {
  for (const char* text : {"fc1_weight", "fc_weight", "fc_weight_weight"})
    CHECK(GlobMatches("fc*_weight", text));
  for (const char* text : {"fc1_bias", "afc1_weight", "fc1_weights", ""})
    CHECK_FALSE(GlobMatches("fc*_weight", text));
  CHECK(GlobMatches("*", ""));
  CHECK(GlobMatches("", ""));
  CHECK_FALSE(GlobMatches("", "a"));
  CHECK(GlobMatches("conv?", "conv1"));
  CHECK_FALSE(GlobMatches("conv?", "conv"));
  CHECK(GlobMatches("*a*b", "xaxbab"));
  CHECK_FALSE(GlobMatches("*a*b", "xaxba"));
}

TEST_CASE("a pattern that matches nothing is rejected with the nearest name") {
  const std::vector<std::string> names = {"layer1_conv_weight", "layer1_conv_bias", "head_weight"};
  CHECK_NOTHROW(RequireMatch("layer?_*", names, "parameter"));
  CHECK_THROWS_WITH(RequireMatch("layr1*", names, "parameter"),
                    "'layr1*' matches no parameter; did you mean 'layer1*'?");
  CHECK_THROWS_WITH(RequireMatch("head_wieght", names, "parameter"),
                    "'head_wieght' matches no parameter; did you mean 'head_weight'?");
  CHECK_THROWS_WITH(RequireMatch("layer1", names, "parameter"),
                    "'layer1' matches no parameter; did you mean 'layer1*'?");
  CHECK_THROWS_WITH(RequireMatch("zzz*", names, "parameter"),
                    "'zzz*' matches no parameter; the names are layer1_conv_weight, ...");
}

}  // namespace
}  // namespace mxtrain
