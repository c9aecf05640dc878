// SPDX-License-Identifier: Apache-2.0
// Every configuration that comes with the program binds, for training and for inference, and runs a
// step.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "app/config/load.h"
#include "app/config/net.h"
#include "tests/support/build_paths.h"
#include "tests/support/configs.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/operator_case.h"
#include "tests/support/plan_reader.h"
#include "tests/support/small_nets.h"
#include "tests/support/turns.h"

namespace mxtrain::test {
namespace {

namespace fs = std::filesystem;

// Nets whose step takes seconds on two cores: they are bound and not run.
const std::set<std::string> kSlow = {"alexnet",
                                     "bert_base",
                                     "convnext_tiny",
                                     "deeplabv3_mobilenet_v3_large",
                                     "deeplabv3_resnet50",
                                     "densenet121",
                                     "efficientnet_v2_s",
                                     "fasterrcnn_resnet50_fpn",
                                     "fcn_resnet50",
                                     "gpt2_124m",
                                     "gpt2_355m",
                                     "inception_v3",
                                     "lraspp_mobilenet_v3_large",
                                     "minilm_l6",
                                     "resnet1001",
                                     "resnet101",
                                     "resnet152",
                                     "resnet34",
                                     "resnet50",
                                     "resnext50_32x4d",
                                     "smollm2_135m",
                                     "smollm2_360m",
                                     "ssdlite320_mobilenet_v3_large",
                                     "swin_t",
                                     "vgg11",
                                     "vit_b_16",
                                     "vit_small_patch16_224",
                                     "vgg11_bn",
                                     "vgg13",
                                     "vgg13_bn",
                                     "vgg16",
                                     "vgg16_bn",
                                     "vgg19",
                                     "vgg19_bn",
                                     "wide_resnet50_2",
                                     "yolox_s",
                                     "yolox_tiny"};
constexpr int64_t kConfigBatch = 2;
constexpr int64_t kClasses = 10;  // for nets that take it from the data

config::Net LoadNet(const fs::path& file) {
  config::Diagnostics diagnostics(std::make_shared<config::SourceMap>());
  config::LoadRequest request;
  request.files = {file.string()};
  const config::LoadedConfig loaded = config::LoadConfig(request, &diagnostics);
  config::Net net = config::BuildNet(
      loaded.config, TestRegistry(),
      [](std::string_view name) {
        return name == "classes" || name == "tokens" ? std::optional(kClasses) : std::nullopt;
      },
      &diagnostics);
  diagnostics.ThrowIfErrors();
  return net;
}

executor::BindRequest ConfigRequest(const config::Net& net) {
  const Symbol& symbol = net.symbol;
  executor::BindRequest request;
  request.namesake = 0;  // executors of one net are compared
  request.shapes = config::PlannedShapes(net, kConfigBatch);
  std::set<std::string> labels;
  for (const auto& label : net.labels) labels.insert(label.name);
  for (const std::string& name : symbol.ListArguments()) {
    if (request.shapes.contains(name) || labels.contains(name)) {
      request.inputs.insert(name);
    } else {
      request.grad_req[name] = executor::GradReq::kWrite;
    }
  }
  // Labels are inferred from their losses.
  const Symbol::Shapes shapes = symbol.InferShape(request.shapes);
  CHECK(shapes.complete);
  const std::vector<std::string> arguments = symbol.ListArguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (request.inputs.contains(arguments[i])) request.shapes[arguments[i]] = shapes.arguments[i];
  }
  return request;
}

// One step on made-up numbers: it runs, and its outputs and gradients are numbers.
void CheckStep(Runtime& runtime, Executor& executor, const executor::BindRequest& request) {
  for (const auto* arrays : {&executor.args(), &executor.auxs()}) {
    for (const auto& [name, array] : *arrays)
      NDArray(array).Fill(name.ends_with("_var") || name.ends_with("_gamma") ? 1 : 0.01);
  }
  std::vector<NDArray> inputs;
  for (const std::string& name : executor.input_names()) {
    const TShape& shape = request.shapes.at(name);
    inputs.emplace_back(runtime, shape);
    const bool classes = name.ends_with("label") && (shape.ndim() == 1 || name.starts_with("ctc"));
    SetValues(inputs.back(), ValuesFor(name, shape.Size(), classes ? 2 : 0));
  }
  executor.Step(inputs);
  const auto finite = [](const NDArray& array) {
    const std::vector<double> values = GetValues(array);
    return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
  };
  for (const NDArray& output : executor.outputs()) CHECK(finite(output));
  for (const auto& [name, grad] : executor.grads()) {
    CAPTURE(name);
    CHECK(finite(grad));
  }
}

// The plan against independent code: no two live contents share a byte, and the bound is what a
// plain sum gives.
void CheckPlan(const Executor& executor) {
  const PlanReader reader(executor.graph(), executor.memory_plan());
  for (const std::string& fault : reader.Faults()) FAIL_CHECK(fault);
  CHECK(reader.LowerBound() == executor.memory_plan().lower_bound);
}

// The most that one kernel needs while it runs.
int64_t LargestWorkspace(const executor::MemoryPlan& plan) {
  int64_t largest = 0;
  for (size_t node = 0; node < plan.workspace_of.size(); ++node) {
    std::vector<int> buffers = plan.temp_space_of[node];
    buffers.push_back(plan.workspace_of[node]);
    int64_t bytes = 0;
    for (const int buffer : buffers) {
      if (buffer >= 0) bytes += plan.buffers[static_cast<size_t>(buffer)].bytes;
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

TEST_CASE("every configuration binds; all but the slowest run a step") {
  const auto runtime = NewRuntime();
  const std::vector<fs::path> files = WholeConfigs();
  CHECK(files.size() >= 8);
  Turns turns("MXTRAIN_CONFIGS");
  for (const fs::path& file : files) {
    if (!turns.Next()) continue;
    CAPTURE(file.string());
    const config::Net net = LoadNet(file);
    executor::BindRequest request = ConfigRequest(net);
    const auto train = Executor::SimpleBind(*runtime, net.symbol, request);
    CHECK(train->memory_plan().arena_bytes >= train->memory_plan().lower_bound);
    CHECK(static_cast<double>(train->memory_plan().arena_bytes) <=
          1.01 * static_cast<double>(train->memory_plan().lower_bound));
    CheckPlan(*train);
    if (!kSlow.contains(file.stem().string())) CheckStep(*runtime, *train, request);
    executor::BindRequest inference = request;
    inference.is_train = false;
    inference.grad_req.clear();
    const auto eval = Executor::SimpleBind(*runtime, net.symbol, inference, train.get());
    CheckPlan(*eval);
    // Evaluation needs no more than training but for what its own kernels need while they run.
    CHECK(eval->arena_bytes() <= train->arena_bytes() + LargestWorkspace(eval->memory_plan()));
  }
}

// Nodes of the training step of a configuration on a GPU whose kernels rank as CUDA's: by operator,
// forward alone.
std::map<std::string, int> OperatorsOnGpu(const std::string& name, std::optional<DType> amp) {
  const auto runtime = NewChannelsLastRuntime();
  const config::Net net = LoadNet(SourceDir() / "configs" / "imagenet" / (name + ".yaml"));
  executor::BindRequest request = ConfigRequest(net);
  request.ctx = Context::gpu();
  request.amp = amp;
  std::map<std::string, int> count;
  for (const auto& node : executor::RunPasses(net.symbol.graph(), request, *runtime).nodes) {
    if (node.kind == Node::Kind::kForward) ++count[node.op->TypeString()];
  }
  return count;
}

// The batch norms without an activation are those of the shortcuts.
TEST_CASE("on a GPU batch norms take the additions and activations behind them") {
  for (const std::optional<DType> amp : {std::optional<DType>(), std::optional(DType::kBfloat16)}) {
    std::map<std::string, int> resnet50 = OperatorsOnGpu("resnet50", amp),
                               mobilenet = OperatorsOnGpu("mobilenet_v2", amp),
                               vgg16 = OperatorsOnGpu("vgg16", amp);
    CHECK(resnet50["_BatchNormActivation"] == 49);
    CHECK(resnet50["BatchNorm"] == 4);
    CHECK(resnet50["Activation"] + resnet50["elemwise_add"] + resnet50["ElementWiseSum"] == 0);
    // Sums behind the ten blocks that keep their shape are fused too.
    CHECK(mobilenet["_BatchNormActivation"] == 35 + 10);
    CHECK(mobilenet["BatchNorm"] == 7);
    CHECK(mobilenet["clip"] == 0);
    // cuDNN does not fuse in training, and its kernel is better than a fused `ref`.
    CHECK(vgg16["Convolution"] == 13);
    CHECK(vgg16["Activation"] == 15);
  }
}

TEST_CASE("pixels become 16-bit inputs in one kernel") {
  const auto runtime = NewChannelsLastRuntime();
  const config::Net net = LoadNet(SourceDir() / "configs" / "imagenet" / "resnet18.yaml");
  const std::string input = net.inputs[0].name;
  const Symbol pixels[] = {Symbol::Variable(input)};
  const Symbol symbol = net.symbol.Compose(
      {{input, Symbol::Create(TestRegistry(), "image_normalize", "normalize", {}, pixels)}});
  executor::BindRequest request = ConfigRequest(net);
  request.ctx = Context::gpu();
  TShape& images = request.shapes.at(input);
  images = {images[0], images[2], images[3], images[1]};
  request.types[input] = DType::kUint8;
  for (const DType type : {DType::kFloat16, DType::kBfloat16}) {
    request.amp = type;
    int found = 0;
    const executor::ExecGraph graph = executor::RunPasses(symbol.graph(), request, *runtime);
    for (const auto& node : graph.nodes) {
      if (node.kind != Node::Kind::kForward || node.op->TypeString() != "image_normalize") continue;
      ++found;
      CHECK(node.specs[0].type == type);
      CHECK(node.origins.size() == 2);
    }
    CHECK(found == 1);
  }
}

}  // namespace
}  // namespace mxtrain::test
