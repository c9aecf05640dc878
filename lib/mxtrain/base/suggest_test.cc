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
  CHECK(Nearest("Embedding", kNames).empty());
  CHECK(Nearest("x", {}).empty());
  CHECK(DidYouMean("Embedding", kNames).empty());
  CHECK(DidYouMean("Relu", kNames) == "; did you mean 'relu'?");
}

}  // namespace
}  // namespace mxtrain
