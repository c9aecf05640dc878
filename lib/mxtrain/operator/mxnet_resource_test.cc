// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/mxnet_resource.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <vector>

namespace mxtrain::mxnet {
namespace {

TEST_CASE("a request is its type, and for scratch its bytes, if they are known") {
  const auto requests = [](const TShape& shape) -> std::vector<ResourceRequest> {
    return {ResourceRequest::kRandom, {ResourceRequest::kTempSpace, shape.Size() * 4}};
  };
  const std::vector<ResourceRequest> both = requests({2, 3});
  REQUIRE(both.size() == 2);
  CHECK(both[0].type == ResourceRequest::kRandom);
  CHECK(both[0].bytes == 0);
  CHECK(both[1].type == ResourceRequest::kTempSpace);
  CHECK(both[1].bytes == 24);
  const std::vector<ResourceRequest> unsized = {ResourceRequest::kTempSpace};
  CHECK(unsized[0].bytes == ResourceRequest::kUnknownSize);
}

TEST_CASE("get_space is an array in the granted bytes") {
  std::vector<double> bytes(6);
  const Resource resource({ResourceRequest::kTempSpace, bytes.data(), 48, nullptr, 0, "conv1"},
                          Context::cpu(1));
  const TBlob space = resource.get_space({3, 4}, nullptr);
  CHECK(space.data == bytes.data());
  CHECK(space.shape == TShape{3, 4});
  CHECK(space.type == DType::kFloat32);
  CHECK(space.ctx == Context::cpu(1));
  CHECK(resource.get_space_typed<double>({6}).type == DType::kFloat64);
  CHECK_THROWS_WITH_AS(resource.get_space({13}),
                       "conv1: GetSpace of 52 bytes, but 48 were requested; request as many as are "
                       "used, or kUnknownSize",
                       Error);
  CHECK_THROWS_WITH_AS(resource.get_random(),
                       "conv1: get_random of a resource that was requested for temporary space; "
                       "request kRandom too",
                       Error);
}

Resource RandomResource(const RandomState& state, uint64_t stream) {
  return {{ResourceRequest::kRandom, nullptr, 0, &state, stream, "noise"}, Context::cpu()};
}

TEST_CASE("get_random draws the node's numbers of the step, and goes forward with each call") {
  RandomState state{7, 3};
  const Resource resource = RandomResource(state, 11);
  Random random = resource.get_random(nullptr);
  std::vector<float> first(5), second(5), again(5);
  random.SampleUniform(std::span(first));
  for (size_t i = 0; i < first.size(); ++i) CHECK(first[i] == resource.Uniform(i));
  random.SampleUniform(std::span(second));
  CHECK(second != first);
  resource.get_random().SampleUniform(std::span(again));
  CHECK(again == first);
  state.step = 4;
  resource.get_random().SampleUniform(std::span(again));
  CHECK(again != first);
  CHECK_THROWS_AS(resource.get_space({1}), Error);
}

TEST_CASE("uniform and normal numbers of one object share no Philox block") {
  const RandomState state{1, 0};
  Random random = RandomResource(state, 2).get_random();
  std::vector<double> uniform(6), normal(3), more(6);
  random.SampleUniform(std::span(uniform));  // blocks 0 and 1
  random.SampleGaussian(std::span(normal));  // blocks 2 and 3
  random.SampleUniform(std::span(more));     // blocks 4 and 5
  for (size_t i = 0; i < 3; ++i) CHECK(normal[i] == double{NormalAt(1, 2, 0, 4 + i)});
  for (size_t i = 0; i < 6; ++i) CHECK(more[i] == double{UniformAt(1, 2, 0, 16 + i)});
}

TEST_CASE("samples have the range and the moments that were asked for") {
  const RandomState state{5, 1};
  Random random = RandomResource(state, 9).get_random();
  std::vector<float> values(40000);
  const auto moments = [&] {
    double sum = 0, squares = 0;
    for (const float v : values) sum += v, squares += double{v} * v;
    const double n = static_cast<double>(values.size()), mean = sum / n;
    return std::pair(mean, std::sqrt(squares / n - mean * mean));
  };
  random.SampleUniform(std::span(values), -2, 4);
  for (const float v : values) REQUIRE((v >= -2 && v < 4));
  CHECK(moments().first == doctest::Approx(1).epsilon(0.05));
  CHECK(moments().second == doctest::Approx(6 / std::sqrt(12)).epsilon(0.02));
  random.SampleGaussian(std::span(values), 3, 0.5);
  CHECK(moments().first == doctest::Approx(3).epsilon(0.01));
  CHECK(moments().second == doctest::Approx(0.5).epsilon(0.02));
  CHECK(std::set<float>(values.begin(), values.end()).size() > values.size() / 2);
}

}  // namespace
}  // namespace mxtrain::mxnet
