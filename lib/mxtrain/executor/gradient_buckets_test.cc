// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/gradient_buckets.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "mxtrain/executor/executor.h"
#include "tests/support/small_nets.h"

namespace mxtrain::executor {
namespace {

// Three layers with weights of 20, 24 and 12 floats, and biases.
std::vector<GradientBucket> BucketsOfThreeLayers(int64_t bytes, bool biases = true) {
  const auto registry = BuiltinOperators();
  Symbol x = Symbol::Variable("data");
  for (const auto& [name, outputs] : {std::pair("fc1", "4"), {"fc2", "6"}, {"fc3", "2"}})
    x = Symbol::Create(*registry, "FullyConnected", name, {{"num_hidden", outputs}},
                       std::vector{x});
  x = Symbol::Create(*registry, "MakeLoss", "loss", {}, std::vector{x});
  BindRequest request;
  request.shapes = {{"data", {3, 5}}};
  request.inputs = {"data"};
  request.reference_kernels = true;  // arrays without padding
  for (const std::string& name : x.ListArguments()) {
    if (name != "data" && (biases || name.ends_with("weight")))
      request.grad_req[name] = GradReq::kWrite;
  }
  Runtime runtime({}, registry);
  return GradientBuckets(RunPasses(x.graph(), request, runtime), bytes);
}

std::vector<std::vector<std::string>> Sorted(const std::vector<GradientBucket>& buckets) {
  std::vector<std::vector<std::string>> names;
  for (const GradientBucket& bucket : buckets) {
    names.push_back(bucket.arguments);
    std::sort(names.back().begin(), names.back().end());
  }
  return names;
}

TEST_CASE("gradients in the order of the backward pass, in buckets of at least so many bytes") {
  using Names = std::vector<std::vector<std::string>>;
  const Names each{
      {"fc3_bias", "fc3_weight"}, {"fc2_bias", "fc2_weight"}, {"fc1_bias", "fc1_weight"}};
  CHECK(Sorted(BucketsOfThreeLayers(1)) == each);
  const std::vector<GradientBucket> two = BucketsOfThreeLayers(14 * 4 + 1);
  CHECK(Sorted(two) == Names{{"fc2_bias", "fc2_weight", "fc3_bias", "fc3_weight"}, each[2]});
  CHECK(two[0].bytes == 4 * (12 + 2 + 24 + 6));
  CHECK(two[1].bytes == 4 * (20 + 4));
  CHECK(two[0].last < two[1].last);
  CHECK(BucketsOfThreeLayers(int64_t{1} << 40).size() == 1);
  CHECK(Sorted(BucketsOfThreeLayers(1, /*biases=*/false)) ==
        Names{{"fc3_weight"}, {"fc2_weight"}, {"fc1_weight"}});
}

}  // namespace
}  // namespace mxtrain::executor
