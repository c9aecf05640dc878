// SPDX-License-Identifier: Apache-2.0
// Operators and whole steps on a GPU, compared with the CPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "mxtrain/device/kernel_choices.h"
#include "mxtrain/executor/captures.h"
#include "mxtrain/operator/imperative.h"
#include "tests/gpu/runtime.h"
#include "tests/support/gpus.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

NDArray Make(Runtime& runtime, const std::string& name, int64_t n, DType type, Context ctx) {
  NDArray array(runtime, {n}, DType::kFloat32, Context::cpu());
  SetValues(array, ValuesFor(name, n));
  const NDArray in[] = {array};
  return Invoke("Cast", in, {{"dtype", NameOf(type)}})[0].Copy(ctx);
}

TEST_CASE("one functor, two devices: smooth_l1 in every type, assigning and accumulating") {
  const auto runtime = GpuRuntime();
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16}) {
    for (const int64_t n : {1, 31, 4097, (3 << 20) + 5}) {  // the last: several trips of a loop
      for (const OpReqType req : {OpReqType::kWriteTo, OpReqType::kAddTo}) {
        const auto run = [&](Context ctx) {
          const NDArray in[] = {Make(*runtime, "x", n, type, ctx)};
          NDArray out[] = {Make(*runtime, "y", n, type, ctx)};
          InvokeInto("smooth_l1", in, out, req, {{"scalar", "2"}});
          return out[0].ToVector();
        };
        CAPTURE(NameOf(type));
        CAPTURE(n);
        const std::vector<float> on_cpu = run(Context::cpu()), on_gpu = run(kGpu);
        const double width = type == DType::kBfloat16  ? 0x1p-7
                             : type == DType::kFloat16 ? 0x1p-10
                                                       : 0x1p-22;
        for (size_t i = 0; i < on_cpu.size(); ++i)
          CHECK(std::abs(on_cpu[i] - on_gpu[i]) <= width * (1 + std::abs(on_cpu[i])));
      }
    }
  }
}

TEST_CASE("image_normalize: the bits of the CPU for every pixel value") {
  const auto runtime = GpuRuntime();
  std::vector<uint8_t> bytes(256 * 3);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i / 3);
  NDArray pixels(*runtime, {2, 16, 8, 3}, DType::kUint8);
  pixels.CopyFromHost(bytes.data(), static_cast<int64_t>(bytes.size()));
  for (const Kwargs& kwargs :
       {Kwargs{}, Kwargs{{"mean", "(0.485, 0.456, 0.406)"}, {"std", "(0.229, 0.224, 0.225)"}}}) {
    const auto run = [&](Context ctx) {
      const NDArray in[] = {pixels.Copy(ctx)};
      return Invoke("image_normalize", in, kwargs)[0].ToVector();
    };
    CHECK(run(kGpu) == run(Context::cpu()));
  }
}

TEST_CASE("a step of a net: outputs and gradients match the CPU") {
  const auto runtime = GpuRuntime();
  std::vector<SmallNet> nets = SmallNets(runtime->operators());
  nets.push_back(DropoutNet(runtime->operators()));
  for (const SmallNet& net : nets) {
    CAPTURE(net.name);
    std::map<std::string, std::vector<double>> results[2];
    for (const bool on_gpu : {false, true}) {
      executor::BindRequest request = RequestFor(net, net.losses);
      request.ctx = on_gpu ? kGpu : Context::cpu();
      const auto executor = BindWithValues(*runtime, net.losses, request);
      for (int step = 0; step < 5; ++step)  // the last of them replayed
        executor->Step(MakeInputs(*runtime, net, executor->input_names(), DType::kFloat32,
                                  std::to_string(step)));
      for (size_t i = 0; i < executor->outputs().size(); ++i)
        results[on_gpu][std::to_string(i)] = GetValues(executor->outputs()[i]);
      for (const auto& [name, array] : executor->grads()) results[on_gpu][name] = GetValues(array);
      for (const auto& [name, array] : executor->auxs()) results[on_gpu][name] = GetValues(array);
    }
    REQUIRE(results[0].size() == results[1].size());
    for (const auto& [name, values] : results[0]) {
      CAPTURE(name);
      const std::vector<double>& others = results[1].at(name);
      double worst = 0;
      for (size_t i = 0; i < values.size(); ++i)
        worst = std::max(worst, std::abs(others[i] - values[i]) / (1 + std::abs(values[i])));
      CHECK(worst < 2e-4);
    }
  }
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(a[i] - b[i], 2);
  return std::sqrt(sum);
}

TEST_CASE("captured steps give the bits of uncaptured ones, and are replayed") {
  const auto runtime = GpuRuntime();
  std::vector<SmallNet> nets = SmallNets(runtime->operators());
  nets.push_back(DropoutNet(runtime->operators()));
  constexpr int kSteps = 8;
  for (const SmallNet& net : nets) {
    CAPTURE(net.name);
    std::map<std::string, std::vector<double>> results[2];
    for (const bool captured : {false, true}) {
      executor::BindRequest request = RequestFor(net, net.losses);
      request.ctx = kGpu;
      request.deterministic = true;
      request.capture_passes = captured;
      const auto executor = BindWithValues(*runtime, net.losses, request);
      executor->set_random_step(7);
      const executor::Captures& counts = executor::CapturesOf(*runtime);
      const int64_t replays = counts.replays;
      for (int step = 0; step < kSteps; ++step)
        executor->Step(MakeInputs(*runtime, net, executor->input_names(), DType::kFloat32,
                                  std::to_string(step)));
      for (size_t i = 0; i < executor->outputs().size(); ++i)
        results[captured][std::to_string(i)] = GetValues(executor->outputs()[i]);
      for (const auto& [name, array] : executor->grads())
        results[captured][name] = GetValues(array);
      for (const auto& [name, array] : executor->auxs()) results[captured][name] = GetValues(array);
      // Inputs alternate between two sets of arrays: each runs once first.
      CHECK(counts.replays - replays == (captured ? kSteps - 2 : 0));
      CHECK(counts.failures == 0);
    }
    CHECK(results[0] == results[1]);
  }
}

// By cuDNN's engines, where it has them (Ampere to Blackwell); otherwise both runs are the same.
TEST_CASE("float16: convolutions that do a part of the work of batch norms") {
  const auto runtime = GpuRuntime();
  Symbol x = Symbol::Variable("data");
  const auto layer = [&](const char* op, const std::string& name, const Kwargs& kwargs) {
    const Symbol inputs[] = {x};
    return Symbol::Create(runtime->operators(), op, name, kwargs, inputs);
  };
  for (const int i : {1, 2, 3}) {
    const std::string at = std::to_string(i);
    x = layer("Convolution", "conv" + at,
              {{"num_filter", "64"}, {"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"no_bias", "True"}});
    x = layer("BatchNorm", "norm" + at, {{"fix_gamma", "False"}});
    x = layer("Activation", "relu" + at, {{"act_type", "relu"}});
  }
  x = layer("Pooling", "pool", {{"global_pool", "True"}, {"pool_type", "avg"}});
  x = layer("FullyConnected", "classes", {{"num_hidden", "4"}});
  const SmallNet net{"norms",
                     layer("SoftmaxOutput", "softmax", {}),
                     x,
                     {{"data", {16, 64, 14, 14}}},
                     {{"softmax_label", {16}}},
                     4};
  std::map<std::string, std::vector<double>> results[2];
  for (const bool fuse : {false, true}) {
    executor::BindRequest request = RequestFor(net, net.losses);
    request.ctx = kGpu;
    request.amp = DType::kFloat16;
    request.fuse = fuse;
    const auto executor = BindWithValues(*runtime, net.losses, request);
    for (int step = 0; step < 4; ++step)
      executor->Step(MakeInputs(*runtime, net, executor->input_names(), DType::kFloat32,
                                std::to_string(step)));
    int sharing = 0;
    for (const auto& node : executor->graph().nodes)
      sharing +=
          node.kind == Node::Kind::kForward && node.op->TypeString() == "_ConvolutionWithBatchNorm";
    MESSAGE(sharing << " convolutions share the work of batch norms");
    if (!fuse) CHECK(sharing == 0);
    for (const auto& [name, array] : executor->grads()) results[fuse][name] = GetValues(array);
    for (const auto& [name, array] : executor->auxs()) results[fuse][name] = GetValues(array);
  }
  for (const auto& [name, values] : results[0]) {
    CAPTURE(name);
    double squares = 0, distance = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      squares += values[i] * values[i];
      distance += std::pow(results[1].at(name)[i] - values[i], 2);
    }
    CHECK(std::sqrt(distance) <= 0.03 * std::sqrt(squares) + 1e-4);
  }
}

// Batch norm with what is fused to it, and pooling, on more elements than a grid has threads.
TEST_CASE("large images: a step matches the CPU") {
  const auto runtime = GpuRuntime();
  const auto layer = [&](const char* op, const char* name, const std::vector<Symbol>& in,
                         const Kwargs& kwargs = {}) {
    return Symbol::Create(runtime->operators(), op, name, kwargs, in);
  };
  const Kwargs window = {{"kernel", "(3, 3)"}, {"stride", "(2, 2)"}, {"pad", "(1, 1)"}};
  const Symbol data = Symbol::Variable("data");
  Symbol x = layer("Convolution", "conv", {data},
                   {{"kernel", "(1, 1)"}, {"num_filter", "64"}, {"no_bias", "False"}});
  const Symbol sum = layer("elemwise_add", "sum", {layer("BatchNorm", "bn", {x})[0], x});
  x = layer("Activation", "relu", {sum}, {{"act_type", "relu"}});
  x = layer("Pooling", "max", {x}, window);
  x = layer("Pooling", "mean", {x}, {{"pool_type", "avg"}, {"global_pool", "True"}});
  x = layer("FullyConnected", "fc", {x}, {{"num_hidden", "4"}});
  const SmallNet net{"large",
                     layer("SoftmaxOutput", "softmax", {x}),
                     x,
                     {{"data", {8, 3, 112, 112}}},
                     {{"softmax_label", {8}}},
                     4};
  for (const std::optional<DType> amp :
       {std::optional<DType>(), std::optional(DType::kFloat16), std::optional(DType::kBfloat16)}) {
    if (amp && !runtime->backend(kGpu).WhyNotFastIn(*amp, kGpu).empty()) continue;
    const double rounding = !amp ? 2e-5 : *amp == DType::kFloat16 ? 0x1p-9 : 0x1p-6;
    std::map<std::string, std::vector<double>> results[2];
    for (const bool on_gpu : {false, true}) {
      executor::BindRequest request = RequestFor(net, net.losses);
      request.ctx = on_gpu ? kGpu : Context::cpu();
      request.math = Math::kExact;
      if (on_gpu) request.amp = amp;
      const auto executor = BindWithValues(*runtime, net.losses, request);
      executor->Step(MakeInputs(*runtime, net, executor->input_names()));
      for (const auto& [name, array] : executor->grads()) results[on_gpu][name] = GetValues(array);
      for (const auto& [name, array] : executor->auxs()) results[on_gpu][name] = GetValues(array);
    }
    for (const auto& [name, values] : results[0]) {
      CAPTURE(name);
      const double size = Distance(values, std::vector<double>(values.size()));
      CHECK(Distance(results[1].at(name), values) <= 8 * rounding * (size + 1));
    }
  }
}

// Gradients of a step on the GPU, exact without `amp`; float16 gradients are scaled and unscaled
// again.
std::map<std::string, std::vector<double>> GradientsIn(std::optional<DType> amp, Runtime& runtime,
                                                       const SmallNet& net) {
  constexpr double kScale = 256;
  executor::BindRequest request = RequestFor(net, net.losses);
  request.ctx = kGpu;
  request.amp = amp;
  request.math = amp ? Math::kFast : Math::kExact;
  const auto executor = BindWithValues(runtime, net.losses, request);
  const bool scaled = !executor->loss_scale().empty();
  CHECK(scaled == (amp == DType::kFloat16));
  if (scaled) NDArray(executor->loss_scale()).Fill(kScale);
  for (int step = 0; step < 3; ++step)
    executor->Step(
        MakeInputs(runtime, net, executor->input_names(), DType::kFloat32, std::to_string(step)));
  std::map<std::string, std::vector<double>> gradients;
  for (const auto& [name, array] : executor->grads()) {
    gradients[name] = GetValues(array);
    for (double& v : gradients[name]) v /= scaled ? kScale : 1;
  }
  return gradients;
}

TEST_CASE("a step in mixed precision: gradients match float32 except for rounding") {
  const auto runtime = GpuRuntime();
  for (const DType type : {DType::kFloat16, DType::kBfloat16}) {
    if (!runtime->backend(kGpu).WhyNotFastIn(type, kGpu).empty()) continue;
    const double rounding = type == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
    for (const SmallNet& net : SmallNets(runtime->operators())) {
      CAPTURE(std::string(NameOf(type)));
      CAPTURE(net.name);
      const auto wide = GradientsIn({}, *runtime, net), narrow = GradientsIn(type, *runtime, net);
      for (const auto& [name, values] : wide) {
        CAPTURE(name);
        const double size = Distance(values, std::vector<double>(values.size()));
        // Rounding may move a value across zero, where ReLU lets its gradient pass or not.
        CHECK(Distance(narrow.at(name), values) <=
              std::max(40 * rounding, 0.06) * size + 6 * rounding);
      }
    }
  }
}

TEST_CASE("cuDNN's algorithms are measured once if allowed, and not in a deterministic run") {
  const auto first = GpuRuntime(), second = GpuRuntime(), deterministic = GpuRuntime();
  const SmallNet net = SmallNets(first->operators())[1];  // with convolutions
  const auto bind = [&](Runtime& runtime, bool repeats) {
    executor::BindRequest request = RequestFor(net, net.losses);
    request.ctx = kGpu;
    request.deterministic = repeats;
    const KernelChoices::Measuring allowed(ChoicesOf(runtime.backend(kGpu)));
    const auto executor = BindWithValues(runtime, net.losses, request);
    executor->Step(MakeInputs(runtime, net, executor->input_names(), DType::kFloat32, ""));
    runtime.engine().WaitForAll();
    return ChoicesOf(runtime.backend(kGpu))->kept();
  };
  const KernelChoices::Table measured = bind(*first, false);
  CHECK(!measured.empty());
  for (const auto& [key, choice] : measured)
    CHECK_MESSAGE(key.find("cuDNN") != std::string::npos, key << ": " << choice);
  CHECK(bind(*first, false) == measured);
  ChoicesOf(second->backend(kGpu))->Keep(measured);
  CHECK(bind(*second, false) == measured);
  CHECK(bind(*deterministic, true).empty());
}

}  // namespace
}  // namespace mxtrain::test
