// SPDX-License-Identifier: Apache-2.0
// Every operator of the registry as a net of its own: it is exported to ONNX, or is on one of two
// lists with the reason why not.
//
// Where MXTRAIN_ONNX_DIR names a folder, each net is written there, NAME.onnx, with its inputs and
// what it gives here, NAME.safetensors: tests/reference/check_onnx_operators.py compares that with
// onnxruntime.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/executor/executor.h"
#include "mxtrain/ndarray/safetensors.h"
#include "mxtrain/onnx/export.h"
#include "mxtrain/onnx/import.h"
#include "mxtrain/onnx/model_file.h"
#include "mxtrain/operator/composite.h"
#include "tests/support/error_message.h"
#include "tests/support/small_nets.h"
#include "tests/unit/onnx/in_batch.h"
#include "tests/unit/onnx/operator_cases.h"

namespace mxtrain::test {
namespace {

// --- those that are not exported ---

struct Refused {
  const char *op, *reason;
};
// No net for inference has them.
constexpr Refused kNotInNets[] = {
    {"softmax_cross_entropy", "a loss of a whole batch; it reads labels"},
    {"linear_cross_entropy", "a loss; it reads labels"},
    {"shuffle", "its output is random"},
    {"_BatchNormActivation", "made by the executor"},
    {"_ConvolutionActivation", "made by the executor"},
    {"_ConvolutionWithBatchNorm", "made by the executor"},
    {"_ElementwiseChain", "made by the executor"},
    {"_FoldBatchNorm", "made by the executor"},
    {"_NormalizeRows", "made by the executor"},
    {"_scale_gradient", "made by the executor"},
    {"_reshape_to", "has no batch of any size; parts of composites have it"},
    {"_loss_scale_update", "part of training"},
    {"clip_global_norm", "part of training"},
    {"multi_sum_sq", "part of training"},
    {"PointBoxLoss", "a loss; it reads labels"},
    {"SimOtaLoss", "a loss; it reads labels"},
    {"CTCLoss", "a loss; it reads labels"},
    {"cached_attention", "keeps keys and values from run to run"},
    {"AnchorBoxLoss", "a loss; it reads labels"},
    {"PyramidProposalLoss", "a loss; it reads labels"},
    {"RegionLoss", "a loss; it reads targets"},
    {"RegionTargets", "targets of a loss; it reads labels"},
    {"_contrib_MultiBoxTarget", "targets of a loss; it reads labels"},
    {"_contrib_box_encode", "targets of a loss; it reads labels"},
    {"_contrib_bipartite_matching", "part of making targets of a loss"},
};
bool IsInNets(const std::string& op) {
  const bool random = op.starts_with("_random_") || op.starts_with("_sample_");
  if (random || op.ends_with("_update")) return false;
  return std::ranges::none_of(kNotInNets, [&op](const Refused& r) { return op == r.op; });
}
constexpr Refused kNoEquivalent[] = {
    {"Correlation", "ONNX has no such operator"},
    {"digamma", "ONNX has no such function"},
    {"erfinv", "ONNX has no such function"},
    {"gamma", "ONNX has no such function"},
    {"gammaln", "ONNX has no such function"},
    {"_contrib_MultiBoxDetection", "its anchors are not converted"},
    {"_contrib_box_decode", "its anchors are not converted"},
};
bool HasEquivalent(const std::string& op) {
  return std::ranges::none_of(kNoEquivalent, [&op](const Refused& r) { return op == r.op; });
}

// --- running them ---

struct Run {
  Symbol symbol;
  std::map<std::string, NDArray> args, auxs, inputs;
  std::vector<NDArray> outputs;
  onnx::Model model;
};

Symbol Build(const OperatorRegistry& registry, const Case& net) {
  std::map<std::string, Symbol> symbols;
  std::vector<Symbol> inputs;
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    const std::string name = format("x{}", i);
    inputs.push_back(Symbol::Variable(name, {{"__dtype__", NameOf(net.inputs[i].type)}}));
    symbols[name] = inputs.back();
  }
  for (const Step& step : net.steps) {
    std::vector<Symbol> read;
    for (const std::string& name : step.inputs) {
      if (!symbols.contains(name)) symbols[name] = Symbol::Variable(name);  // a parameter
      read.push_back(symbols[name]);
    }
    symbols[step.op] = Symbol::Create(registry, step.op, step.op, step.params,
                                      step.inputs.empty() ? inputs : read);
  }
  const Symbol last = symbols.at(net.steps.back().op);
  return net.output.empty() ? last : last[net.steps.back().op + "_" + net.output];
}

Values ValuesOf(const Input& input, const std::string& name) {
  const int64_t size = InBatch(input.example).Size();
  Values values;
  if (input.cycle.empty()) {
    for (const double v : ValuesFor(name, size)) values.push_back(1.9 * v);
  } else {
    for (int64_t i = 0; i < size; ++i)
      values.push_back(input.cycle[static_cast<size_t>(i) % input.cycle.size()]);
  }
  return values;
}

void Forward(Runtime& runtime, const Case& net, Run* run) {
  executor::BindRequest request;
  request.is_train = false;
  request.math = Math::kExact;
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    const std::string name = format("x{}", i);
    request.inputs.insert(name);
    request.shapes[name] = InBatch(net.inputs[i].example);
    request.types[name] = net.inputs[i].type;
    NDArray array(runtime, request.shapes[name], net.inputs[i].type);
    SetValues(array, ValuesOf(net.inputs[i], name));
    run->inputs[name] = array;
  }
  const std::vector<std::string> arguments = run->symbol.ListArguments();
  for (const std::string& name : arguments) {
    if (name.ends_with("label")) request.inputs.insert(name);
  }
  const std::vector<TShape> shapes = run->symbol.InferShape(request.shapes).arguments;
  const auto executor = BindWithValues(runtime, run->symbol, request);
  std::vector<NDArray> fed;
  for (const std::string& name : executor->input_names()) {
    const auto at = std::ranges::find(arguments, name) - arguments.begin();
    const bool label = !run->inputs.contains(name);
    fed.push_back(label ? NDArray::Zeros(runtime, shapes[static_cast<size_t>(at)])
                        : run->inputs[name]);
  }
  executor->Forward(fed);
  for (const NDArray& output : executor->outputs()) run->outputs.push_back(output.ToPlain());
  for (const auto& [name, array] : executor->args()) run->args[name] = array.ToPlain();
  for (const auto& [name, array] : executor->auxs()) run->auxs[name] = array.ToPlain();
}

void Export(const Case& net, Run* run, const OperatorRegistry* operators = nullptr) {
  onnx::ExportRequest request;
  request.symbol = run->symbol;
  for (size_t i = 0; i < net.inputs.size(); ++i)
    request.inputs.push_back({format("x{}", i), net.inputs[i].example, net.inputs[i].type});
  request.args = &run->args;
  request.auxs = &run->auxs;
  request.operators = operators;
  run->model = onnx::ExportModel(request);
}

Run RunOf(Runtime& runtime, const Case& net) {
  Run run;
  run.symbol = Build(runtime.operators(), net);
  Forward(runtime, net, &run);
  Export(net, &run);
  return run;
}

bool IsFinite(const Run& run) {
  return std::ranges::all_of(run.outputs, [](const NDArray& output) {
    return std::ranges::all_of(GetValues(output), [](double v) { return std::isfinite(v); });
  });
}

// Of an operator without required parameters: every argument is an input of one shape, whose
// values are such that the result is finite.
Case AutomaticCase(const OperatorRegistry& registry, const std::string& op, const Values& cycle) {
  const auto property = registry.Create(op, {});
  Case net{op, {}, {{op}}};
  for (size_t i = 0; i < property->ListArguments().size(); ++i) {
    Values turned = cycle;  // the inputs differ
    if (!cycle.empty())
      std::rotate(turned.begin(), turned.begin() + static_cast<int64_t>(i), turned.end());
    net.inputs.push_back({{5}, turned});
  }
  return net;
}

Run RunAutomatic(Runtime& runtime, const std::string& op, Case* net) {
  for (const Values& cycle : {Values(), Values{0.3, 0.7, 0.1, 0.85, 0.5, 0.6, 0.2},
                              Values{1.3, 1.7, 1.1, 1.85, 1.5, 2.6, 3.2}}) {
    *net = AutomaticCase(runtime.operators(), op, cycle);
    Run run = RunOf(runtime, *net);
    if (IsFinite(run)) return run;
  }
  FAIL("no inputs for which the result is finite: ", op);
  return {};
}

// --- and back ---

// Nets that are exported and refused when they are imported.
constexpr Refused kNotImported[] = {
    {"image_normalize", "is of type uint8"},
    {"_contrib_box_nms", "NonMaxSuppression"},
    {"_contrib_box_nms of classes", "NonMaxSuppression"},
    {"_contrib_box_nms of all classes", "NonMaxSuppression"},
    {"_contrib_box_nms of none", "NonMaxSuppression"},
    {"_contrib_box_nms of odd rows", "NonMaxSuppression"},
    {"_contrib_box_nms of classes apart", "NonMaxSuppression"},
    {"PyramidProposals of 1000", "NonMaxSuppression"},
    {"PyramidProposals of 5", "NonMaxSuppression"},
    {"_contrib_MultiBoxPrior", "does not depend on the input"},
    {"_contrib_MultiBoxPrior of steps", "does not depend on the input"},
    {"sum", "it reduces the batch axis"},
    {"zeros_like", "does not depend on the input"},
    {"ones_like", "does not depend on the input"},
    {"full_like", "does not depend on the input"},
    {"full_like of integers", "does not depend on the input"},
    {"shape_array", "does not depend on the input"},
    {"size_array", "does not depend on the input"},
    {"_arange", "does not depend on the input"},
    {"arange_like", "does not depend on the input"},
    {"boolean_mask", "it reduces the batch axis"},
    {"_eye", "does not depend on the input"},
    {"_full", "does not depend on the input"},
    {"_linspace", "does not depend on the input"},
    {"_ones", "does not depend on the input"},
    {"_zeros", "does not depend on the input"},
};

// What the exported net gives when it is imported; nothing for one whose import is refused.
std::optional<std::vector<Values>> Imported(Runtime& runtime, const Case& net, const Run& run) {
  onnx::ImportedNet again;
  try {
    again = onnx::ImportModel(run.model, runtime.operators(), {.loss = false});
  } catch (const Error& e) {
    const std::string message = e.what();
    CAPTURE(message);
    CHECK(std::ranges::any_of(kNotImported, [&](const Refused& refused) {
      return net.name == refused.op && message.find(refused.reason) != std::string::npos;
    }));
    return std::nullopt;
  }
  if (again.layers.empty()) return std::nullopt;  // the output is the input
  executor::BindRequest request;
  request.is_train = false;
  request.math = Math::kExact;
  const Symbol symbol = onnx::ToSymbol(again, runtime.operators());
  const std::vector<std::string> arguments = symbol.ListArguments();
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    const std::string name = format("x{}", i);
    if (std::ranges::find(arguments, name) == arguments.end()) continue;  // only its shape is read
    request.inputs.insert(name);
    request.shapes[name] = InBatch(net.inputs[i].example);
  }
  const auto executor = BindWithValues(runtime, symbol, request);
  const std::map<std::string, NDArray> arrays = onnx::ArraysOf(again, runtime);
  for (const auto* own : {&executor->args(), &executor->auxs()}) {
    for (const auto& [name, array] : *own) NDArray(array).CopyFrom(arrays.at(name));
  }
  std::vector<NDArray> fed;
  for (const std::string& name : executor->input_names()) {
    const size_t i = std::stoul(name.substr(1));
    fed.push_back(NDArray(runtime, request.shapes[name]));
    SetValues(fed.back(), ValuesOf(net.inputs[i], name));
  }
  executor->Forward(fed);
  std::vector<Values> outputs;
  for (const NDArray& output : executor->outputs()) outputs.push_back(GetValues(output));
  return outputs;
}

void CheckImported(Runtime& runtime, const Case& net, const Run& run) {
  const auto outputs = Imported(runtime, net, run);
  if (!outputs) return;
  for (size_t i = 0; i < outputs->size(); ++i) {
    const Values ours = GetValues(run.outputs[i]);
    REQUIRE(ours.size() == (*outputs)[i].size());
    double largest = 0, difference = 0;
    for (size_t at = 0; at < ours.size(); ++at) {
      largest = std::max(largest, std::abs(ours[at]));
      difference = std::max(difference, std::abs(ours[at] - (*outputs)[i][at]));
    }
    CHECK(difference <= 1e-5 * largest);
  }
}

void Write(const Case& net, const Run& run, const std::string& folder) {
  std::string name = net.name;
  std::ranges::replace(name, ' ', '_');
  std::map<std::string, NDArray> arrays;
  for (const auto& [input, array] : run.inputs) arrays["input " + input] = array;
  for (size_t i = 0; i < run.outputs.size(); ++i)
    arrays["output " + run.model.outputs[i].name] = run.outputs[i];
  const std::string path = (std::filesystem::path(folder) / name).string();
  WriteFileAtomically(path + ".onnx", onnx::WriteModel(run.model));
  WriteFileAtomically(path + ".safetensors", SerializeSafetensors(arrays));
}

TEST_CASE("every operator is exported to ONNX, or is listed with a reason") {
  const auto runtime = NewRuntime();
  const char* folder = std::getenv("MXTRAIN_ONNX_DIR");
  std::map<std::string, std::vector<Case>> cases;
  for (const auto& family : {LayerCases(), ArrayCases(), BoxCases()}) {
    for (const Case& net : family) cases[net.steps.back().op].push_back(net);
  }
  int exported = 0;
  for (const std::string& op : runtime->operators().Names()) {
    CAPTURE(op);
    if (!IsInNets(op) || !HasEquivalent(op)) {
      CHECK(!cases.contains(op));
      continue;
    }
    std::vector<Case> nets = cases.contains(op) ? cases[op] : std::vector<Case>(1);
    for (Case& net : nets) {
      Run run;
      const std::string message = MessageOf([&] {
        run = net.steps.empty() ? RunAutomatic(*runtime, op, &net) : RunOf(*runtime, net);
      });
      CAPTURE(net.name);
      CHECK(message == "");
      if (!message.empty()) continue;
      ++exported;
      CHECK(IsFinite(run));
      CheckImported(*runtime, net, run);
      if (folder && onnx::HasOnnxFiles()) Write(net, run, folder);
    }
  }
  CHECK(exported > 200);
}

TEST_CASE("constant integers are not rounded to float32") {
  const auto runtime = NewRuntime();
  const auto constant = [&](const std::string& op, const Kwargs& params) {
    const Run run = RunOf(*runtime, One(op, params, {}));
    REQUIRE(run.model.initializers.size() == 1);
    const std::vector<int64_t> numbers = run.model.initializers.begin()->second.ToInts();
    const Values ours = GetValues(run.outputs[0]);
    CHECK(std::ranges::equal(ours, numbers, {}, {},
                             [](int64_t n) { return static_cast<double>(n); }));
    return numbers;
  };
  const Kwargs at{{"start", "16777217"}, {"stop", "16777219"}, {"dtype", "int64"}};
  CHECK(constant("_arange", at) == std::vector<int64_t>{16777217, 16777218});
  const Kwargs steps{{"start", "0"}, {"stop", "30"}, {"step", "0.29"}, {"dtype", "int32"}};
  CHECK(constant("_arange", steps)[100] == 28);
  const Kwargs full{{"shape", "(1,)"}, {"value", "16777217"}, {"dtype", "int32"}};
  CHECK(constant("_full", full) == std::vector<int64_t>{16777217});
}

// Of an operator of kNoEquivalent.
Case RefusedCase(const OperatorRegistry& registry, const std::string& op) {
  if (op == "Correlation") return One(op, {}, {kImage, kImage});
  if (op == "_contrib_MultiBoxPrior") return One(op, {}, {kImage});
  // Anchors are the same for all images.
  const Step anchors{"sum", {{"axis", "0"}, {"keepdims", "True"}}, {"x0"}};
  if (op == "_contrib_box_decode") return {op, {{{4, 4}}}, {anchors, {op, {}, {"x0", "sum"}}}};
  if (op == "_contrib_MultiBoxDetection")
    return {op, {{{4, 4}}, {{3, 4}}, {{16}}}, {anchors, {op, {}, {"x1", "x2", "sum"}}}};
  return AutomaticCase(registry, op, {0.5});
}

TEST_CASE("what has no equivalent is refused by name") {
  const auto runtime = NewRuntime();
  for (const Refused& refused : kNoEquivalent) {
    CAPTURE(refused.op);
    const Case net = RefusedCase(runtime->operators(), refused.op);
    CHECK(MessageOf([&] { RunOf(*runtime, net); }) ==
          format("no ONNX equivalent is known here for {0} '{0}'", refused.op));
  }
}

TEST_CASE("uses of operators that ONNX cannot express are refused with the reason") {
  const auto runtime = NewRuntime();
  const auto message = [&](const Case& net) { return MessageOf([&] { RunOf(*runtime, net); }); };
  const auto refusal = [](const std::string& op, const std::string& reason) {
    return format("{0} '{0}' cannot be exported to ONNX: {1}", op, reason);
  };
  CHECK(message(One("topk", {{"axis", "None"}}, {kRow})) ==
        refusal("topk", "without an axis it orders the whole batch"));
  CHECK(message(One("argmax", {}, {kRow})) ==
        refusal("argmax", "without an axis it searches the whole batch"));
  CHECK(message(One("arange_like", {}, {kRow})) ==
        refusal("arange_like", "its shape depends on the size of the batch"));
  CHECK(message(One("cumsum", {}, {kRow})) ==
        refusal("cumsum", "without an axis it adds up the whole batch"));
  CHECK(message(One("cumsum", {{"axis", "1"}, {"dtype", "uint8"}}, {kRow})) ==
        refusal("cumsum", "dtype = uint8 has no equivalent"));
  CHECK(message(One("full_like", {{"fill_value", "1e19"}, {"dtype", "int64"}}, {kRow})) ==
        refusal("full_like", "1e+19 is not within the range of integers"));
  CHECK(message(One("take", {{"mode", "raise"}, {"axis", "1"}}, {kRow, Numbers({}, {0, 1})})) ==
        refusal("take", "mode = raise has no equivalent; use clip or wrap"));
  CHECK(message(One("take", {}, {kRow, Numbers({}, {0, 1})})) ==
        refusal("take", "axis 0 depends on the size of the batch"));
  CHECK(message(One("diag", {}, {Numbers({}, {1, 2})})) ==
        refusal("diag", "matrices made of a vector have no equivalent"));
  CHECK(message(One("Cast", {{"dtype", "float64"}}, {kRow})) ==
        refusal("Cast", "dtype = float64; expected float32, int32, int64 or uint8"));
}

// A composite as a plug-in defines it, made of another composite that it defines.
TEST_CASE("a composite of a plug-in leaves as its parts, in its own registry") {
  const auto plugin = BuiltinOperators();
  AddComposite<NoParam>(
      *plugin,
      {.name = "twice_negated", .description = "-2 x", .lower = [](const NoParam&, Lowering& g) {
         const auto x = g.argument(0);
         g.SetOutput(0, g("negative", {g("elemwise_add", {x, x})}));
       }});
  AddComposite<NoParam>(*plugin, {.name = "root_of_that",
                                  .description = "sqrt(-2 x)",
                                  .lower = [](const NoParam&, Lowering& g) {
                                    g.SetOutput(0,
                                                g("sqrt", {g("twice_negated", {g.argument(0)})}));
                                  }});
  const Case net = One("root_of_that", {}, {kRow});
  Run run;
  run.symbol = Build(*plugin, net);
  Export(net, &run, plugin.get());
  std::vector<std::string> ops;
  for (const onnx::ModelNode& node : run.model.nodes) ops.push_back(node.op);
  CHECK(ops == std::vector<std::string>{"Add", "Neg", "Sqrt"});
  CHECK(MessageOf([&] { Export(net, &run); }) ==
        "no ONNX equivalent is known here for root_of_that 'root_of_that'");
}

}  // namespace
}  // namespace mxtrain::test
