// SPDX-License-Identifier: Apache-2.0
// Runs whose first layers are frozen: with features computed once they end in the bits of runs that
// compute them in every step, stopped and resumed or not.
#include <doctest/doctest.h>

#include "mxtrain/base/error.h"
#include "mxtrain/train/feature_cut.h"
#include "tests/support/frozen_run.h"

namespace mxtrain::test {
namespace {

TEST_CASE(
    "features that are computed once give the bits of a run that computes them in each step") {
  const TempDir data;
  WriteImages(data);
  for (const bool dropped : {false, true}) {
    for (const int64_t grad_accum : {1, 2}) {
      CAPTURE(dropped);
      CAPTURE(grad_accum);
      FrozenSpec spec;
      spec.net = TrunkAndHead(dropped);
      spec.grad_accum = grad_accum;
      const FrozenOutcome plain = RunFrozen(data, spec);
      spec.cached = true;
      const FrozenOutcome cached = RunFrozen(data, spec);
      CHECK(cached.last == plain.last);
      REQUIRE(cached.epochs.size() == 4);
      for (size_t e = 0; e < 4; ++e) CheckSameEpoch(cached.epochs[e], plain.epochs[e]);
    }
  }
}

TEST_CASE("a head on features reads other inputs beside them, as in a run that caches nothing") {
  const TempDir data;
  WriteImages(data);
  WriteImageTable(data);
  FrozenSpec spec;
  spec.net = TrunkAndInputs();
  spec.table = true;
  spec.freeze.patterns = {"conv*"};
  const FrozenOutcome plain = RunFrozen(data, spec);
  spec.cached = true;
  const FrozenOutcome cached = RunFrozen(data, spec);
  CHECK(cached.last == plain.last);
  REQUIRE(cached.epochs.size() == 4);
  for (size_t e = 0; e < 4; ++e) CheckSameEpoch(cached.epochs[e], plain.epochs[e]);
  CheckFrozenResumes(data, spec, {1, 7});
  spec.freeze.epochs = 2;
  CheckFrozenResumes(data, spec, {10, 11});
  FrozenProcess(data, spec).trainer->Rehearse();
  // The images themselves are not kept.
  spec.freeze = {{"of_code*"}, 0, true};
  CHECK_THROWS_WITH(FrozenProcess(data, spec),
                    doctest::Contains("Convolution 'conv' reads the input 'data', and it learns"));
}

TEST_CASE("validation images of another size have features of another shape") {
  const TempDir data;
  WriteImages(data);
  // Any size of images fits the head.
  Symbol net = Layer("Convolution", "conv", {Symbol::Variable("data")},
                     {{"num_filter", "6"}, {"kernel", "(3, 3)"}});
  net = Layer("Activation", "act", {net}, {{"act_type", "relu"}});
  net = Layer("Convolution", "last", {net}, {{"num_filter", "3"}, {"kernel", "(3, 3)"}});
  net = Layer("Pooling", "pool", {net},
              {{"pool_type", "avg"}, {"kernel", "(1, 1)"}, {"global_pool", "True"}});
  net = Layer("SoftmaxOutput", "softmax", {Layer("Flatten", "flat", {net})});
  for (const auto& [side, val_side] : {std::pair(7, 9), std::pair(9, 7)}) {
    CAPTURE(side);
    FrozenSpec spec;
    spec.net = net;
    spec.freeze.patterns = {"conv*"};
    spec.side = side;
    spec.val_side = val_side;
    const FrozenOutcome plain = RunFrozen(data, spec);
    spec.cached = true;
    const FrozenOutcome cached = RunFrozen(data, spec);
    CHECK(cached.last == plain.last);
    REQUIRE(cached.epochs.size() == 4);
    for (size_t e = 0; e < 4; ++e) CheckSameEpoch(cached.epochs[e], plain.epochs[e]);
  }
}

TEST_CASE("layers before and after the features share a frozen parameter") {
  const TempDir data;
  WriteImages(data);
  const Symbol weight = Symbol::Variable("shared_weight");
  const auto square = [&](const char* name, const Symbol& input) {
    return Symbol::Create(TestRegistry(), "FullyConnected", name,
                          {{"num_hidden", format("{}", 3 * kSide * kSide)}, {"no_bias", "True"}},
                          std::vector{input, weight});
  };
  Symbol net = square("first", Layer("Flatten", "flat", {Symbol::Variable("data")}));
  net = square("second", Layer("Dropout", "drop", {net}, {{"p", "0.5"}}));
  net = Layer("FullyConnected", "fc", {net}, {{"num_hidden", "3"}});
  FrozenSpec spec;
  spec.net = Layer("SoftmaxOutput", "softmax", {net});
  spec.freeze.patterns = {"shared*"};
  const FrozenOutcome plain = RunFrozen(data, spec);
  spec.cached = true;
  const FrozenOutcome cached = RunFrozen(data, spec);
  CHECK(LargestDifference(cached.bits, plain.bits) < 1e-4);
  if (!RowsDependOnBatch()) CHECK(cached.last == plain.last);
  CheckFrozenResumes(data, spec, {7});
}

TEST_CASE("a run on features is stopped and resumed without a difference") {
  const TempDir data;
  WriteImages(data);
  FrozenSpec spec;
  spec.cached = true;
  CheckFrozenResumes(data, spec, {1, 5, 7});
}

TEST_CASE("what cannot be computed once is refused with its reason") {
  const TempDir data;
  WriteImages(data);
  FrozenSpec spec;
  spec.cached = true;
  spec.freeze.fix_statistics = false;
  CHECK_THROWS_WITH(FrozenProcess(data, spec),
                    doctest::Contains("normalizes by the mean and variance of each batch"));
  spec.freeze.fix_statistics = true;
  spec.freeze.patterns = {"bn*"};
  CHECK_THROWS_WITH(FrozenProcess(data, spec),
                    doctest::Contains("Convolution 'conv' reads the input 'data', and it learns"));
  spec.freeze.patterns = {"*"};
  CHECK_THROWS_WITH(FrozenProcess(data, spec),
                    "every parameter is frozen: nothing would be trained");
  spec.freeze.patterns = {"conv*", "bn*"};
  spec.limit_bytes = 1000;
  CHECK_THROWS_WITH(FrozenProcess(data, spec), doctest::Contains("the limit is 1000 B"));
}

TEST_CASE("features that depend on other examples of a batch are noticed") {
  const TempDir data;
  WriteImages(data);
  FrozenSpec spec;
  const Symbol conv = Layer("Convolution", "conv", {Symbol::Variable("data")},
                            {{"num_filter", "6"}, {"kernel", "(3, 3)"}});
  const Symbol mean = Layer("mean", "mean", {conv}, {{"axis", "0"}, {"keepdims", "True"}});
  Symbol net =
      Symbol::Create(TestRegistry(), "broadcast_sub", "centred", {}, std::vector{conv, mean});
  net = Layer("FullyConnected", "fc", {Layer("Flatten", "flat", {net})}, {{"num_hidden", "3"}});
  spec.net = Layer("SoftmaxOutput", "softmax", {net});
  spec.freeze.patterns = {"conv*"};
  spec.cached = true;
  for (const int batch : {kBatch, 2}) {
    spec.batch = batch;
    CHECK_THROWS_WITH(RunFrozen(data, spec),
                      doctest::Contains("flat_output depends on the other examples of a batch"));
  }
}

TEST_CASE("features without an axis of examples, or of other types, are refused") {
  const std::map<std::string, TShape> shapes{{"data", TShape{8, 3, kSide, kSide}}};
  const LrPatterns frozen{{"conv*", 0}};
  const auto cut = [&](Symbol net) {
    net = Layer("SoftmaxOutput", "softmax",
                {Layer("FullyConnected", "fc", {net}, {{"num_hidden", "3"}})});
    CutAtFeatures(TestRegistry(), net, shapes, {"data"}, {"softmax_label"}, frozen);
  };
  const Symbol conv = Layer("Convolution", "conv", {Symbol::Variable("data")},
                            {{"num_filter", "6"}, {"kernel", "(3, 3)"}});
  CHECK_THROWS_WITH(cut(Layer("Reshape", "cells", {conv}, {{"shape", "(-1, 6)"}})),
                    doctest::Contains("cells_output has the shape [128, 6] for a batch of 8"));
  CHECK_THROWS_WITH(cut(Layer("Cast", "half", {conv}, {{"dtype", "float64"}})),
                    doctest::Contains("Cast 'half' is float64, and only float32 can be kept"));
}

TEST_CASE("the cut is behind the last layer that is the same in every step") {
  const std::map<std::string, TShape> shapes{{"data", TShape{8, 3, kSide, kSide}}};
  const LrPatterns frozen{{"conv*", 0}, {"bn*", 0}};
  const Symbol fixed = WithFixedStatistics(TestRegistry(), TrunkAndHead(true), frozen);
  const FeatureCut cut =
      CutAtFeatures(TestRegistry(), fixed, shapes, {"data"}, {"softmax_label"}, frozen);
  CHECK(cut.last == "act");
  CHECK(cut.layers == 3);
  CHECK(cut.names == std::vector<std::string>{"act_features"});
  CHECK(cut.shapes == std::vector<TShape>{TShape{6, 4, 4}});
  CHECK(cut.Numbers() == 96);
  CHECK(cut.head.ListArguments() ==
        std::vector<std::string>{"act_features", "fc_weight", "fc_bias", "softmax_label"});
  CHECK(cut.trunk.ListArguments() ==
        std::vector<std::string>{"data", "conv_weight", "bn_gamma", "bn_beta"});
  CHECK(cut.held_up_by.empty());
  CHECK(cut.inputs.empty());
  const FeatureCut beside =
      CutAtFeatures(TestRegistry(), TrunkAndInputs(),
                    {{"data", {8, 3, kSide, kSide}}, {"size", {8, 2}}, {"code", {8, 1}}},
                    {"data", "size", "code"}, {"softmax_label"}, frozen);
  CHECK(beside.names == std::vector<std::string>{"flat_features"});
  CHECK(beside.inputs == std::vector<std::string>{"code", "size"});
  CHECK(beside.Numbers() == 96 + 2 + 1);
  LrPatterns more = frozen;
  more.emplace_back("fc_weight", 0);
  CHECK(
      CutAtFeatures(TestRegistry(), fixed, shapes, {"data"}, {"softmax_label"}, more).held_up_by ==
      "Dropout 'drop'");
}

}  // namespace
}  // namespace mxtrain::test
