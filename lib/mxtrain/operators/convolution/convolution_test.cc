// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "mxtrain/base/format.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/device/cpu/onednn/bfloat16.h"
#include "mxtrain/device/cpu/onednn/version.h"
#include "tests/support/convolution_net.h"

namespace mxtrain::test {
namespace {

void RunConvolution(const std::string& name, const ConvolutionNet& net,
                    const std::vector<std::string>& must_accept = {"ref", "onednn"}) {
  OperatorCase c = CaseOf(name, net);
  c.must_accept = must_accept;
  // A kernel for the gradient of the weights only.
  c.any_gradients = must_accept.back() != "shallow";
  RunCase(c);
}

TEST_CASE("Convolution: kernels, strides, pads") {
  RunConvolution("3x3", {.data = {2, 16, 6, 5}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 16});
  RunConvolution("1x1", {.data = {2, 16, 4, 4}, .kernel = {1, 1}, .filters = 8, .bias = false});
  RunConvolution("channels that are not a multiple of a block",
                 {.data = {2, 10, 5, 5}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 13});
  RunConvolution(
      "uneven in every parameter",
      {.data = {1, 8, 9, 7}, .kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 0}, .filters = 8});
  RunConvolution(
      "dilated",
      {.data = {1, 8, 9, 8}, .kernel = {3, 2}, .pad = {2, 1}, .dilate = {2, 3}, .filters = 8});
  RunConvolution("rows that no window reaches",
                 {.data = {1, 8, 6, 6}, .kernel = {1, 1}, .stride = {3, 2}, .filters = 8});
}

TEST_CASE("Convolution: first layers") {
  RunConvolution("one channel", {.data = {2, 1, 8, 8}, .kernel = {5, 5}, .filters = 20});
  RunConvolution(
      "three channels",
      {.data = {2, 3, 9, 9}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .filters = 16});
}

TEST_CASE("Convolution: few channels, image-blocked") {
  const std::vector<std::string> kernels = {"ref", "image_blocked"};
  RunConvolution("one channel", {.data = {16, 1, 7, 6}, .kernel = {5, 5}, .filters = 5}, kernels);
  RunConvolution("an odd number of vectors, uneven windows",
                 {.data = {48, 3, 4, 5}, .kernel = {2, 3}, .filters = 11}, kernels);
  RunConvolution(
      "padding on all sides",
      {.data = {16, 5, 4, 3}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 9, .bias = false},
      kernels);
  RunConvolution("more padding than image",
                 {.data = {32, 2, 2, 1}, .kernel = {5, 7}, .pad = {3, 4}, .filters = 3}, kernels);
  RunConvolution("a wide filter",
                 {.data = {16, 2, 3, 9}, .kernel = {1, 8}, .pad = {0, 2}, .filters = 11}, kernels);
}

// Central differences would take minutes for shapes of a useful size. Tolerance: Winograd's sums
// have up to four times the rounding error of plain ones.
void RunWinograd(const std::string& name, const ConvolutionNet& net, bool inference = false) {
  OperatorCase c = CaseOf(name, net);
  c.types = {DType::kFloat32};
  c.must_accept = {"ref", "onednn"};
  const auto kernels = TestRegistry().Kernels("Convolution", DeviceType::kCPU);
  const bool built = std::any_of(kernels.begin(), kernels.end(), [](const KernelEntry* kernel) {
    return kernel->name == "winograd";
  });
  if (built && __builtin_cpu_supports("avx2")) c.must_accept.push_back("winograd");
  // oneDNN allocates for the gradient of the weights.
  if (!inference) c.may_allocate.push_back("winograd");
  c.gradient = [net](const Arrays& in, const Arrays&, const Arrays& head) {
    return ConvolveBack(net, in[0], in[1], head[0]);
  };
  const int64_t terms = c.shapes[1].Product(1, 4) + net.data[0] * net.data[2] * net.data[3];
  c.tolerance = {64 + static_cast<double>(terms), "sums of as many products by Winograd's method"};
  if (inference) {
    c.is_train = false;
    c.backward = false;
  }
  RunCase(c);
}

TEST_CASE("Convolution: Winograd") {
  RunWinograd("whole tiles",
              {.data = {2, 32, 16, 16}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 32});
  RunWinograd("many tiles",
              {.data = {3, 32, 50, 43}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 32});
  RunWinograd("tiles that extend over the edges",
              {.data = {1, 48, 23, 21}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 64});
  RunWinograd("channels that are not a multiple of a block",
              {.data = {3, 40, 19, 18}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 51});
  RunWinograd("no padding",
              {.data = {3, 48, 21, 22}, .kernel = {3, 3}, .filters = 33, .bias = false});
  RunWinograd("more padding on one side than on the other",
              {.data = {3, 35, 22, 18}, .kernel = {3, 3}, .pad = {0, 2}, .filters = 48});
}

TEST_CASE("Convolution: Winograd in inference, with prepacked weights") {
  RunWinograd("whole blocks",
              {.data = {1, 64, 16, 16}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 64}, true);
  RunWinograd("odd sizes",
              {.data = {2, 41, 15, 13}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 50}, true);
}

TEST_CASE("Convolution: groups") {
  RunConvolution(
      "two groups",
      {.data = {2, 16, 4, 4}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 16, .groups = 2});
  RunConvolution(
      "two groups of odd size",
      {.data = {2, 6, 4, 5}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 4, .groups = 2});
  RunConvolution(
      "depthwise",
      {.data = {2, 16, 5, 5}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 16, .groups = 16},
      {"ref", "onednn", "grouped"});
  RunConvolution("depthwise, odd",
                 {.data = {1, 5, 5, 5},
                  .kernel = {3, 3},
                  .pad = {1, 1},
                  .filters = 5,
                  .groups = 5,
                  .bias = false},
                 {"ref"});
  RunConvolution("depthwise with two filters each",
                 {.data = {1, 4, 5, 5}, .kernel = {3, 3}, .filters = 8, .groups = 4}, {"ref"});
}

TEST_CASE("Convolution: depthwise, by loops of its own") {
  const auto run = [&](const std::string& name, ConvolutionNet net) {
    net.filters = net.groups = net.data[1];
    RunConvolution("depthwise, " + name, net, {"ref", "grouped"});
  };
  run("3x3", {.data = {2, 32, 5, 6}, .kernel = {3, 3}, .pad = {1, 1}});
  run("5x5, rows longer than a tile", {.data = {1, 16, 6, 19}, .kernel = {5, 5}, .pad = {2, 2}});
  run("7x7, an image smaller than the window",
      {.data = {3, 16, 4, 5}, .kernel = {7, 7}, .pad = {3, 3}, .bias = false});
  run("strides, uneven",
      {.data = {2, 16, 9, 12}, .kernel = {5, 3}, .stride = {2, 3}, .pad = {2, 0}, .bias = false});
  run("strides longer than the window",
      {.data = {1, 16, 8, 9}, .kernel = {2, 1}, .stride = {3, 4}, .pad = {1, 0}});
  run("strides longer than the image",
      {.data = {2, 16, 2, 3}, .kernel = {2, 3}, .stride = {5, 4}, .pad = {1, 1}});
  run("dilated, strided", {.data = {2, 16, 9, 11},
                           .kernel = {3, 2},
                           .stride = {2, 1},
                           .pad = {2, 3},
                           .dilate = {2, 3}});
  run("channels that fill no block", {.data = {2, 19, 5, 4}, .kernel = {3, 3}, .pad = {1, 1}});
  run("windows of every width: 1", {.data = {1, 16, 5, 5}, .kernel = {4, 1}});
  run("2", {.data = {1, 16, 4, 5}, .kernel = {4, 2}, .pad = {0, 1}});
  run("4", {.data = {1, 16, 4, 5}, .kernel = {3, 4}, .pad = {1, 2}});
  run("6", {.data = {1, 16, 4, 9}, .kernel = {1, 6}});
  run("9", {.data = {1, 16, 2, 10}, .kernel = {2, 9}, .pad = {1, 4}});
  run("more images than parts", {.data = {37, 16, 2, 2}, .kernel = {3, 3}, .pad = {1, 1}});
  run("padding that some windows never leave",
      {.data = {1, 16, 2, 2}, .kernel = {3, 3}, .pad = {5, 4}});
}

// A kernel's answer to a request for a forward pass with the data in this layout, or "".
std::string RefusalOf(const std::string& kernel, const ConvolutionNet& net,
                      const std::string& layout) {
  const auto property = TestRegistry().Create("Convolution", CaseOf("", net).kwargs);
  const std::vector<TensorSpec> in = {{net.data, DType::kFloat32, {}},
                                      {CaseOf("", net).shapes[1], DType::kFloat32, {}}},
                                out = {{OutputShape(net), DType::kFloat32, {}}};
  const std::vector<std::optional<Layout>> layouts = {
      layout.empty() ? Layout() : TestBackend().Intern(BlockedLayout::FromName(layout)),
      std::nullopt};
  const std::vector<OpReqType> req = {OpReqType::kWriteTo};
  PlanRequest request;
  request.threads = 2;
  request.in = in, request.out = out, request.in_layout = layouts, request.out_req = req;
  for (const KernelEntry* entry : TestRegistry().Kernels("Convolution", DeviceType::kCPU)) {
    if (entry->name != kernel) continue;
    const auto plan = entry->plan(*property, request, TestBackend());
    return plan ? "" : plan.error().reason;
  }
  return "no such kernel";
}

TEST_CASE("Convolution: image blocks repay the reorders that they cost") {
  ConvolutionNet net{.data = {32, 20, 28, 28}, .kernel = {1, 1}, .filters = 50, .bias = false};
  CHECK(RefusalOf("image_blocked", net, "") == "");
  CHECK(RefusalOf("image_blocked", net, "aBcd8b") == "data in blocks of channels already");
  net.kernel = {5, 5};  // 25 times the arithmetic
  CHECK(RefusalOf("image_blocked", net, "aBcd8b") == "");
  net = {.data = {32, 58, 28, 28}, .kernel = {1, 1}, .filters = 58, .bias = false};
  CHECK(RefusalOf("image_blocked", net, "") == "enough channels for oneDNN's blocks");
}

TEST_CASE("Convolution: groups of few channels of bfloat16, with a float32 bias") {
  for (const int64_t group : {1, 4}) {
    for (const int64_t channels : {16, 20}) {
      ConvolutionNet net{.data = {2, channels, 5, 6},
                         .kernel = {5, 3},
                         .stride = {2, 1},
                         .pad = {2, 1},
                         .filters = channels,
                         .groups = channels / group};
      OperatorCase c =
          CaseOf(format("bfloat16, {} channels in groups of {}", channels, group), net);
      c.types = {DType::kBfloat16};
      c.input_types = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
      CHECK(KernelRan(RunCase(c), "grouped"));
    }
  }
}

TEST_CASE("Convolution: groups of few channels, by loops of their own") {
  for (const int64_t group : {2, 4, 8}) {
    std::vector<std::string> kernels = {"ref"};
    if (group <= 4 || __builtin_cpu_supports("avx2")) kernels.push_back("grouped");
    const auto run = [&](const std::string& name, ConvolutionNet net) {
      net.filters = net.data[1];
      net.groups = net.data[1] / group;
      RunConvolution(format("groups of {}, {}", group, name), net, kernels);
    };
    run("3x3", {.data = {2, 32, 4, 11}, .kernel = {3, 3}, .pad = {1, 1}});
    run("strided, channels that fill no block",
        {.data = {1, 24, 7, 6}, .kernel = {3, 2}, .stride = {2, 2}, .pad = {1, 0}, .bias = false});
    run("dilated", {.data = {3, 16, 5, 5}, .kernel = {2, 2}, .pad = {1, 2}, .dilate = {2, 3}});
  }
}

TEST_CASE("Convolution: small, empty, other types") {
  RunConvolution("one of everything", {.data = {1, 1, 1, 1}, .kernel = {1, 1}, .filters = 1},
                 {"ref"});
  RunConvolution("no images", {.data = {0, 3, 4, 4}, .kernel = {3, 3}, .filters = 2}, {"ref"});
  OperatorCase c =
      CaseOf("narrow types", {.data = {1, 2, 4, 4}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 3});
  c.types = {DType::kFloat16, DType::kBfloat16};
  RunCase(c);
}

// Products of bfloat16 are exact in float32; only sums and, once, the bfloat16 results are rounded.
TEST_CASE("Convolution: bfloat16 with a float32 bias, by oneDNN if the processor supports it") {
  const auto run = [](const std::string& name, const ConvolutionNet& net, bool always) {
    OperatorCase c = CaseOf("bfloat16, " + name, net);
    c.types = {DType::kBfloat16};
    if (net.bias) c.input_types = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
    const CaseReport report = RunCase(c);
    if (always && !OneDnnVersion().empty() && WhyNoBfloat16().empty())
      CHECK(KernelRan(report, "onednn"));
  };
  run("3x3", {.data = {2, 16, 6, 5}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 16}, true);
  run("1x1", {.data = {2, 32, 4, 4}, .kernel = {1, 1}, .filters = 16, .bias = false}, true);
  run("1x1, strided",
      {.data = {2, 16, 5, 5}, .kernel = {1, 1}, .stride = {2, 2}, .filters = 32, .bias = false},
      true);
  run("three channels",
      {.data = {2, 3, 9, 9}, .kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .filters = 16},
      true);
  run("channels that are not a multiple of a block",
      {.data = {2, 10, 5, 5}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 13}, true);
  run("depthwise",
      {.data = {2, 16, 5, 5}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 16, .groups = 16}, false);
}

TEST_CASE("Convolution: one type, except for a float32 bias with narrow data") {
  const auto conv =
      TestRegistry().Create("Convolution", {{"kernel", "(3, 3)"}, {"num_filter", "8"}});
  std::vector<DType> in{DType::kBfloat16, DType::kUnknown, DType::kFloat32}, out{DType::kUnknown},
      aux;
  CHECK(conv->InferType(&in, &out, &aux));
  CHECK(in == std::vector<DType>{DType::kBfloat16, DType::kBfloat16, DType::kFloat32});
  CHECK(out[0] == DType::kBfloat16);
  in = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
  out = {DType::kUnknown};
  CHECK(conv->InferType(&in, &out, &aux));
  CHECK(in[0] == DType::kFloat32);
  in = {DType::kBfloat16, DType::kUnknown, DType::kUnknown};
  out = {DType::kUnknown};
  CHECK(conv->InferType(&in, &out, &aux));
  CHECK(in[2] == DType::kBfloat16);
  in = {DType::kBfloat16, DType::kFloat32, DType::kUnknown};
  CHECK_THROWS_WITH_AS(conv->InferType(&in, &out, &aux), doctest::Contains("insert a Cast"), Error);
  in = {DType::kFloat64, DType::kUnknown, DType::kFloat32};
  out = {DType::kUnknown};
  CHECK_THROWS_AS(conv->InferType(&in, &out, &aux), Error);
}

TEST_CASE("Convolution: inference") {
  OperatorCase c =
      CaseOf("inference", {.data = {2, 16, 6, 6}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 16});
  c.is_train = false;
  c.backward = false;
  c.must_accept = {"ref", "onednn"};
  RunCase(c);
}

TEST_CASE("_ConvolutionActivation: with and without sum") {
  for (const char* act : {"none", "relu", "relu6"}) {
    for (bool sum : {false, true}) {
      const std::string name = std::string(act) + (sum ? " with sum" : "");
      const bool bias = !sum;
      RunConvolution(name, {.data = {2, 16, 6, 5},
                            .kernel = {3, 3},
                            .pad = {1, 1},
                            .filters = 16,
                            .bias = bias,
                            .act = act,
                            .sum = sum});
      RunConvolution(name + ", 1x1 strided", {.data = {2, 16, 5, 5},
                                              .kernel = {1, 1},
                                              .stride = {2, 2},
                                              .filters = 32,
                                              .act = act,
                                              .sum = sum});
      RunConvolution(name + ", depthwise",
                     {.data = {2, 16, 5, 5},
                      .kernel = {3, 3},
                      .pad = {1, 1},
                      .filters = 16,
                      .groups = 16,
                      .act = act,
                      .sum = sum},
                     {"ref", "grouped"});
      RunConvolution(name + ", odd",
                     {.data = {1, 5, 4, 5},
                      .kernel = {2, 3},
                      .filters = 3,
                      .bias = bias,
                      .act = act,
                      .sum = sum},
                     {"ref"});
      RunConvolution(name + ", few channels",
                     {.data = {32, 2, 5, 4},
                      .kernel = {3, 3},
                      .pad = {1, 1},
                      .filters = 3,
                      .act = act,
                      .sum = sum},
                     {"ref", "image_blocked"});
      RunWinograd(name + ", Winograd",
                  {.data = {2, 41, 15, 13},
                   .kernel = {3, 3},
                   .pad = {1, 1},
                   .filters = 50,
                   .bias = bias,
                   .act = act,
                   .sum = sum},
                  true);
      OperatorCase c = CaseOf(name + ", bfloat16", {.data = {2, 16, 6, 5},
                                                    .kernel = {3, 3},
                                                    .pad = {1, 1},
                                                    .filters = 16,
                                                    .act = act,
                                                    .sum = sum});
      c.types = {DType::kBfloat16};
      c.input_types = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
      RunCase(c);
    }
  }
}

// oneDNN's fused activations in inference return 0 for NaN, whatever the operand order.
void RunButOneDnn(const OperatorCase& c) {
  for (const std::string& problem : ExamineCase(c, TestRegistry(), TestBackend()).problems) {
    if (problem.find("kernel 'onednn'") == std::string::npos) FAIL_CHECK(problem);
  }
}

TEST_CASE("_ConvolutionActivation: a NaN passes the activations of our kernels") {
  for (const char* act : {"relu", "relu6"}) {
    for (const ConvolutionNet& net :
         {ConvolutionNet{
              .data = {2, 16, 6, 5}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 16, .act = act},
          ConvolutionNet{.data = {2, 16, 5, 5}, .kernel = {1, 1}, .filters = 32, .act = act},
          ConvolutionNet{.data = {2, 16, 5, 5},
          .kernel = {3, 3},
          .pad = {1, 1},
          .filters = 16,
          .groups = 16,
          .act = act},
          ConvolutionNet{.data = {1, 5, 4, 5}, .kernel = {2, 3}, .filters = 3, .act = act},
          ConvolutionNet{
              .data = {32, 2, 5, 4}, .kernel = {3, 3}, .pad = {1, 1}, .filters = 3, .act = act},
          ConvolutionNet{.data = {2, 41, 15, 13},
          .kernel = {3, 3},
          .pad = {1, 1},
          .filters = 50,
          .act = act}}) {
      OperatorCase c = CaseOf(std::string(act) + " of NaN", net);
      // Of one filter: the others are not affected.
      c.inputs = {Uniform(-1, 1), Uniform(-1, 1), Cycle({0.5, std::nan(""), -0.5})};
      RunButOneDnn(c);
      c.types = {DType::kBfloat16};
      c.input_types = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
      RunButOneDnn(c);
    }
  }
}

TEST_CASE("_ConvolutionActivation: no gradient, and no kernel that claims one") {
  OperatorCase c = CaseOf("no gradient",
                          {.data = {2, 16, 6, 5}, .kernel = {3, 3}, .filters = 16, .act = "relu"});
  c.backward = true;
  const CaseReport report = ExamineCase(c, TestRegistry(), TestBackend());
  CHECK(!report.kernels.empty());
  for (const KernelOutcome& kernel : report.kernels)
    CHECK_MESSAGE(!kernel.refusal.empty(), kernel.kernel);
}

std::shared_ptr<const OperatorProperty> MakeConvolution(const Kwargs& kwargs,
                                                        const std::string& name = "Convolution") {
  return TestRegistry().Create(name, kwargs);
}

// The padding that TensorFlow documents, as numbers.
TEST_CASE("Convolution: padding as TensorFlow's SAME") {
  struct Same {
    TShape data, kernel, stride, dilate, pad;  // pad: before, then after the data
  };
  for (const Same& s : {Same{{2, 16, 6, 6}, {3, 3}, {2, 2}, {1, 1}, {0, 0, 1, 1}},
                        {{1, 3, 7, 8}, {3, 4}, {1, 1}, {1, 1}, {1, 1, 1, 2}},
                        {{1, 4, 9, 5}, {3, 2}, {1, 2}, {2, 3}, {2, 1, 2, 2}},
                        {{2, 5, 5, 5}, {1, 1}, {2, 3}, {1, 1}, {0, 0, 0, 0}},
                        {{1, 2, 2, 2}, {5, 5}, {3, 3}, {1, 1}, {1, 1, 2, 2}}}) {
    OperatorCase c = CaseOf("same", {.data = s.data,
                                     .kernel = s.kernel,
                                     .stride = s.stride,
                                     .dilate = s.dilate,
                                     .filters = 4,
                                     .bias = false});
    c.name += " " + s.pad.ToTuple();
    for (auto& [key, value] : c.kwargs) {
      if (key == "pad") value = "same";
    }
    c.forward = [s](const Arrays& in, const Arrays&) {
      ConvolutionNet net{
          .data = s.data, .kernel = s.kernel, .stride = s.stride, .dilate = s.dilate, .filters = 4};
      for (int i = 0; i < 2; ++i) net.data[2 + i] += s.pad[i] + s.pad[2 + i];
      Values padded(static_cast<size_t>(net.data.Size()));
      for (int64_t i = 0; i < s.data.Size(); ++i) {
        const int64_t x = i % s.data[3] + s.pad[1], y = i / s.data[3] % s.data[2] + s.pad[0],
                      plane = i / (s.data[3] * s.data[2]);
        padded[static_cast<size_t>((plane * net.data[2] + y) * net.data[3] + x)] =
            in[0][static_cast<size_t>(i)];
      }
      return Arrays{Convolve(net, padded, in[1], nullptr)};
    };
    RunCase(c);
  }
  const auto conv = MakeConvolution(
      {{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"pad", "same"}, {"stride", "(2, 1)"}});
  std::vector<TShape> in{{1, 4, 7, -1}, TShape(), TShape()}, out{{-1, -1, -1, 9}}, aux;
  CHECK(conv->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{1, 4, 7, 9});
  CHECK(out[0] == TShape{1, 8, 4, 9});
  CHECK(MakeConvolution(conv->GetParams())->GetParams() == conv->GetParams());
  CHECK_THROWS_AS(MakeConvolution({{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"pad", "same"}},
                                  "Deconvolution"),
                  Error);
}

// Sixteen channels are one block, so the axis order around it is open: oneDNN 3 distinguishes the
// orders, oneDNN 2 does not.
TEST_CASE("Convolution: oneDNN takes data in blocks, to and from a layer of one block") {
  if (OneDnnVersion().empty()) return;
  const KernelEntry* onednn = nullptr;
  for (const KernelEntry* kernel : TestRegistry().Kernels("Convolution", DeviceType::kCPU))
    onednn = kernel->name == "onednn" ? kernel : onednn;
  REQUIRE(onednn);
  for (const auto& [from, to] : {std::pair<int64_t, int64_t>{32, 16}, {16, 96}, {192, 16}}) {
    CAPTURE(from);
    const auto property = MakeConvolution(
        {{"kernel", "(1, 1)"}, {"num_filter", std::to_string(to)}, {"no_bias", "True"}});
    const std::vector<TensorSpec> in{{{2, from, 8, 8}, DType::kFloat32, Layout()},
                                     {{to, from, 1, 1}, DType::kFloat32, Layout()}};
    const std::vector<TensorSpec> out{{{2, to, 8, 8}, DType::kFloat32, Layout()}};
    const std::vector<OpReqType> write(2, OpReqType::kWriteTo);
    std::vector<std::optional<Layout>> offered(2);
    PlanRequest request;
    request.is_train = request.needs_backward = true;
    request.in = in;
    request.out = out;
    request.in_layout = offered;
    request.out_req = std::span(write).first(1);
    request.grad_req = write;
    const Expected<Plan, Refusal> plan = onednn->plan(*property, request, TestBackend());
    REQUIRE(plan);
    CHECK_FALSE(plan->in[0].plain());
    CHECK(plan->out[0] == plan->in[0]);
    offered[0] = plan->in[0];
    CHECK(onednn->plan(*property, request, TestBackend())->in[0] == plan->in[0]);
  }
}

TEST_CASE("Convolution: shapes are inferred in both directions") {
  const auto conv = MakeConvolution(
      {{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"num_group", "2"}, {"pad", "(1, 1)"}},
      "Convolution_v1");
  std::vector<TShape> in(3), out(1), aux;
  in[0] = {-1, 4, 10, 12};
  CHECK_FALSE(conv->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{8, 2, 3, 3});
  CHECK(in[2] == TShape{8});
  CHECK(out[0] == TShape{-1, 8, 10, 12});
  out[0][0] = 5;
  CHECK(conv->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{5, 4, 10, 12});

  in = {TShape(), {8, 2, 3, 3}, TShape()};
  out = {{5, 8, 7, 6}};
  CHECK(conv->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{5, 4, 7, 6});

  const auto strided =
      MakeConvolution({{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"stride", "(2, 2)"}});
  in = {{-1, 3, -1, -1}, TShape(), TShape()};
  out = {{5, 8, 7, 6}};
  CHECK_FALSE(strided->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{5, 3, -1, -1});
}

TEST_CASE("Convolution: invalid parameters are rejected by name") {
  CHECK_THROWS_WITH_AS(MakeConvolution({{"kernel", "(3, 3, 3, 3)"}, {"num_filter", "8"}}),
                       doctest::Contains("has 4 axes; expected one to three"), Error);
  CHECK_THROWS_WITH_AS(
      MakeConvolution({{"kernel", "(3,)"}, {"num_filter", "8"}, {"layout", "NCHW"}}),
      doctest::Contains("layout must be NCW for a kernel with 1 axes"), Error);
  CHECK_THROWS_WITH_AS(
      MakeConvolution({{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"layout", "NHWC"}}),
      doctest::Contains("NCHW"), Error);
  CHECK_THROWS_WITH_AS(
      MakeConvolution({{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"num_group", "3"}}),
      doctest::Contains("num_group"), Error);
  CHECK_THROWS_WITH_AS(
      MakeConvolution({{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"stride", "(1, 1, 1)"}}),
      doctest::Contains("stride"), Error);
  std::vector<TShape> in{{1, 1, 2, 2}, TShape(), TShape()}, out(1), aux;
  CHECK_THROWS_WITH_AS(
      MakeConvolution({{"kernel", "(3, 3)"}, {"num_filter", "8"}})->InferShape(&in, &out, &aux),
      doctest::Contains("exceeds"), Error);
  in = {{1, 4, 8, 8}, {8, 3, 3, 3}, TShape()};
  CHECK_THROWS_WITH_AS(
      MakeConvolution({{"kernel", "(3, 3)"}, {"num_filter", "8"}})->InferShape(&in, &out, &aux),
      doctest::Contains("weight"), Error);
}

}  // namespace
}  // namespace mxtrain::test
