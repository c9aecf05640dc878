// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/suggest.h"

#include <doctest/doctest.h>

#include <vector>

namespace mxtrain {
namespace {

const std::vector<std::string> kNames = {"Convolution", "Deconvolution", "Pooling", "relu", "sgd"};

TEST_CASE("typos are recognized") {
  CHECK(Nearest("Convoluton", kNames) == "Convolution");   // a letter is missing
  CHECK(Nearest("Poolling", kNames) == "Pooling");         // one letter too many
  CHECK(Nearest("Pooilng", kNames) == "Pooling");          // two swapped
  CHECK(Nearest("convolution", kNames) == "Convolution");  // case
  CHECK(Nearest("Deconv", kNames) == "Deconvolution");     // a prefix
  CHECK(Nearest("sdg", kNames) == "sgd");
}

TEST_CASE("unrelated words get no suggestion") {
  const auto guess = [](const char* word, const char* candidate) {
    return Nearest(word, std::vector<std::string>{candidate});
  };
  CHECK(guess("Crop", "prod").empty());
  CHECK(guess("lr", "lars").empty());
  CHECK(guess("limits", "lists").empty());
  CHECK(guess("loop", "root").empty());
  CHECK(guess("nix", "init").empty());
  CHECK(guess("9", "id").empty());
  CHECK(guess("y", "a").empty());
  CHECK(guess("y", "Y") == "Y");
  CHECK(guess("lt", "lr") == "lr");
  CHECK(guess("xr", "lr").empty());
  CHECK(guess("adm", "adam") == "adam");
  CHECK(Nearest("Embedding", kNames).empty());
  CHECK(Nearest("x", {}).empty());
  CHECK(DidYouMean("Embedding", kNames).empty());
  CHECK(DidYouMean("Relu", kNames) == "; did you mean 'relu'?");
}

}  // namespace
}  // namespace mxtrain
