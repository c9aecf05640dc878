#include "mxtrain/base/suggest.h"

#include <doctest/doctest.h>

#include <vector>

namespace mxtrain {
namespace {

const std::vector<std::string> kNames = {"Convolution", "Deconvolution", "Pooling", "relu", "sgd"};

TEST_CASE("slips of the hand are recognised") {
  CHECK(Nearest("Convoluton", kNames) == "Convolution");   // a letter is missing
  CHECK(Nearest("Poolling", kNames) == "Pooling");         // one too many
  CHECK(Nearest("Pooilng", kNames) == "Pooling");          // two swapped
  CHECK(Nearest("convolution", kNames) == "Convolution");  // case
  CHECK(Nearest("Deconv", kNames) == "Deconvolution");     // begun
  CHECK(Nearest("sdg", kNames) == "sgd");
}

TEST_CASE("what resembles nothing gets no suggestion") {
  CHECK(Nearest("Embedding", kNames).empty());
  CHECK(Nearest("x", {}).empty());
  CHECK(DidYouMean("Embedding", kNames).empty());
  CHECK(DidYouMean("Relu", kNames) == "; did you mean 'relu'?");
}

}  // namespace
}  // namespace mxtrain
