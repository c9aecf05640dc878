// SPDX-License-Identifier: Apache-2.0
// Small nets of every operator that is exported: written as ONNX, read again and imported, they
// give the same numbers. That ONNX means the same by them is checked against onnxruntime by
// tests/reference/check_onnx.py.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/executor.h"
#include "mxtrain/onnx/export.h"
#include "mxtrain/onnx/import.h"
#include "mxtrain/onnx/model_file.h"
#include "tests/support/error_message.h"
#include "tests/support/small_nets.h"
#include "tests/unit/onnx/in_batch.h"

namespace mxtrain::test {
namespace {

struct TripStep {
  std::string op;
  Kwargs params = {};
  std::vector<std::string> inputs = {};  // names; none: the step before
  std::string name = {};                 // "": the operator's, in lower case
};
struct TripCase {
  std::string name;
  TShape input;  // of one example
  std::vector<TripStep> steps;
  bool same_arrays = true;  // the imported net has the names of the parameters
};

std::string NameOf(const TripStep& step) {
  std::string name = step.name.empty() ? step.op : step.name;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  while (name.starts_with('_')) name.erase(0, 1);
  return name;
}

Symbol Build(const OperatorRegistry& registry, const TripCase& net) {
  std::map<std::string, Symbol> symbols{{"data", Symbol::Variable("data")}};
  std::string last = "data";
  for (const TripStep& step : net.steps) {
    std::vector<Symbol> inputs;
    std::vector<std::string> names = step.inputs;
    if (names.empty() && step.op != "_arange") names = {last};
    for (const std::string& input : names) {
      const size_t dot = input.find('.');
      const Symbol whole = symbols.at(input.substr(0, dot));
      inputs.push_back(dot == std::string::npos ? whole : whole[std::stoi(input.substr(dot + 1))]);
    }
    last = NameOf(step);
    symbols[last] = Symbol::Create(registry, step.op, last, step.params, inputs);
  }
  return symbols.at(last);
}

const Kwargs kSmall = {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"pad", "(1, 1)"}};
const Kwargs kMean = {{"kernel", "(1, 1)"}, {"global_pool", "True"}, {"pool_type", "avg"}};

std::vector<TripCase> Cases() {
  return {
      {"classifier",
       {3, 8, 8},
       {{"Convolution", kSmall},
        {"BatchNorm", {{"fix_gamma", "False"}, {"eps", "1e-5"}}},
        {"Activation", {{"act_type", "relu"}}},
        {"Pooling", {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}, {"pool_type", "max"}}},
        {"Flatten"},
        {"FullyConnected", {{"num_hidden", "5"}}},
        {"Dropout"},
        {"SoftmaxOutput"}}},
      {"convolutions",
       {4, 9, 7},
       {{"Convolution",
         {{"kernel", "(3, 2)"},
          {"stride", "(2, 1)"},
          {"num_filter", "6"},
          {"num_group", "2"},
          {"pad", "(2, 0)"},
          {"no_bias", "True"}}},
        {"Convolution",
         {{"kernel", "(2, 3)"}, {"dilate", "(2, 1)"}, {"num_filter", "3"}},
         {},
         "second"},
        {"Convolution",
         {{"kernel", "(3, 2)"}, {"pad", "(0, 1, 2, 0)"}, {"num_filter", "2"}},
         {},
         "third"}}},
      {"fixed gamma", {3, 4, 4}, {{"Convolution", kSmall}, {"BatchNorm"}}},
      {"batch norm of the last axis", {5, 4}, {{"BatchNorm", {{"axis", "2"}}}}},
      {"full pooling",
       {2, 8, 8},
       {{"Pooling", {{"kernel", "(3, 3)"}, {"stride", "(2, 2)"}, {"pooling_convention", "full"}}}}},
      {"mean of padded windows",
       {2, 7, 7},
       {{"Pooling",
         {{"kernel", "(3, 3)"}, {"stride", "(2, 2)"}, {"pad", "(1, 1)"}, {"pool_type", "avg"}}}}},
      {"mean of full padded windows",
       {2, 8, 8},
       {{"Pooling",
         {{"kernel", "(3, 3)"},
          {"stride", "(2, 2)"},
          {"pad", "(1, 1)"},
          {"pool_type", "avg"},
          {"pooling_convention", "full"}}}}},
      {"mean without padding",
       {2, 8, 8},
       {{"Pooling",
         {{"kernel", "(3, 3)"},
          {"stride", "(2, 2)"},
          {"pad", "(1, 1)"},
          {"pool_type", "avg"},
          {"count_include_pad", "False"},
          {"pooling_convention", "full"}}}}},
      {"sum of windows",
       {2, 6, 6},
       {{"Pooling", {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}, {"pool_type", "sum"}}}}},
      {"norm of windows",
       {2, 6, 6},
       {{"Pooling",
         {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}, {"pool_type", "lp"}, {"p_value", "2"}}}}},
      {"global pooling",
       {2, 6, 5},
       {{"Pooling", {{"kernel", "(1, 1)"}, {"global_pool", "True"}, {"pool_type", "max"}}, {}, "a"},
        {"Pooling", kMean, {"data"}, "b"},
        {"Pooling",
         {{"kernel", "(1, 1)"}, {"global_pool", "True"}, {"pool_type", "sum"}},
         {"data"},
         "c"},
        {"Concat", {}, {"a", "b", "c"}}}},
      {"a sum over no axes",
       {5},
       {{"sum", {{"axis", "(0, 1)"}, {"exclude", "True"}}, {}, "a"},
        {"slice_like", {}, {"a", "data"}, "b"},
        {"tanh"}}},
      {"adaptive pooling",
       {2, 7, 6},
       {{"AdaptiveAvgPooling2D", {{"output_size", "(1, 1)"}}, {}, "a"},
        {"AdaptiveAvgPooling2D", {{"output_size", "(7, 3)"}}, {"data"}, "b"},
        {"broadcast_add", {}, {"a", "b"}}}},
      {"enlarging",
       {2, 4, 3},
       {{"UpSampling", {{"scale", "2"}, {"sample_type", "nearest"}, {"num_args", "1"}}, {}, "a"},
        {"BilinearResize2D",
         {{"height", "8"}, {"width", "6"}, {"align_corners", "False"}},
         {"data"},
         "b"},
        {"BilinearResize2D", {{"height", "8"}, {"width", "6"}}, {"data"}, "c"},
        {"ElementWiseSum", {}, {"a", "b", "c"}}}},
      {"enlarging by a weight",
       {2, 4, 3},
       {{"UpSampling",
         {{"scale", "2"}, {"sample_type", "bilinear"}, {"num_filter", "2"}, {"num_args", "2"}}}}},
      {"activations",
       {2, 5},
       {{"Activation", {{"act_type", "sigmoid"}}, {}, "a"},
        {"Activation", {{"act_type", "tanh"}}, {"data"}, "b"},
        {"Activation", {{"act_type", "softrelu"}}, {"data"}, "c"},
        {"Activation", {{"act_type", "softsign"}}, {"data"}, "d"},
        {"LeakyReLU", {{"act_type", "leaky"}, {"slope", "0.2"}}, {"data"}, "e"},
        {"LeakyReLU", {{"act_type", "elu"}, {"slope", "0.5"}}, {"data"}, "f"},
        {"LeakyReLU", {{"act_type", "selu"}}, {"data"}, "g"},
        {"LeakyReLU", {{"act_type", "gelu"}}, {"data"}, "h"},
        {"LeakyReLU", {{"act_type", "prelu"}}, {"data"}, "i"},
        {"LeakyReLU", {{"act_type", "rrelu"}}, {"data"}, "j"},
        {"gelu", {}, {"data"}, "k"},
        {"gelu", {{"approximate", "tanh"}}, {"data"}, "l"},
        {"silu", {}, {"data"}, "m"},
        {"mish", {}, {"data"}, "n"},
        {"hard_swish", {}, {"data"}, "o"},
        {"hard_sigmoid", {}, {"data"}, "p"},
        {"log_sigmoid", {}, {"data"}, "q"},
        {"clip", {{"a_min", "-0.3"}, {"a_max", "0.4"}}, {"data"}, "r"},
        {"Concat",
         {},
         {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j.0", "k", "l", "m", "n", "o", "p", "q",
          "r"}}}},
      {"functions",
       {2, 5},
       {{"abs", {}, {}, "a"},
        {"_plus_scalar", {{"scalar", "1.5"}}, {}, "b"},  // 0.5 and more
        {"sqrt", {}, {"b"}, "c"},
        {"rsqrt", {}, {"b"}, "d"},
        {"log", {}, {"b"}, "e"},
        {"log2", {}, {"b"}, "f"},
        {"log1p", {}, {"b"}, "g"},
        {"exp", {}, {"data"}, "h"},
        {"expm1", {}, {"data"}, "i"},
        {"square", {}, {"data"}, "j"},
        {"cbrt", {}, {"data"}, "k"},
        {"round", {}, {"data"}, "l"},
        {"trunc", {}, {"data"}, "m"},
        {"rint", {}, {"data"}, "n"},
        {"erf", {}, {"data"}, "o"},
        {"arctan", {}, {"data"}, "p"},
        {"sign", {}, {"data"}, "q"},
        {"degrees", {}, {"data"}, "r"},
        {"_rdiv_scalar", {{"scalar", "2"}}, {"b"}, "t"},
        {"_rminus_scalar", {{"scalar", "2"}}, {"b"}, "u"},
        {"_power_scalar", {{"scalar", "3"}}, {"b"}, "v"},
        {"_maximum_scalar", {{"scalar", "0.2"}}, {"data"}, "w"},
        {"_greater_scalar", {{"scalar", "0.2"}}, {"data"}, "x"},
        {"_hypot_scalar", {{"scalar", "0.2"}}, {"data"}, "y"},
        {"logical_not", {}, {"m"}, "z"},
        {"Concat", {}, {"c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n",
                        "o", "p", "q", "r", "t", "u", "v", "w", "x", "y", "z"}}}},
      {"two arrays",
       {4, 5},
       {{"sin", {}, {}, "a"},
        {"elemwise_add", {}, {"data", "a"}, "b"},
        {"elemwise_sub", {}, {"data", "b"}, "c"},
        {"elemwise_mul", {}, {"c", "b"}, "d"},
        {"mean", {{"axis", "2"}, {"keepdims", "True"}}, {"d"}, "e"},
        {"broadcast_add", {}, {"d", "e"}, "f"},
        {"_maximum", {}, {"f", "a"}, "g"},
        {"broadcast_greater", {}, {"g", "e"}, "h"},
        {"_not_equal", {}, {"f", "g"}, "i"},
        {"_logical_or", {}, {"h", "i"}, "j"},
        {"where", {}, {"j", "f", "data"}}}},
      {"norms",
       {4, 6},
       {{"LayerNorm", {}, {}, "a"},
        {"LayerNorm", {{"axis", "1"}}, {"a"}, "b"},
        {"RMSNorm", {}, {"b"}, "c"},
        {"InstanceNorm", {}, {"c"}, "d"},
        {"GroupNorm", {{"num_groups", "2"}}, {"d"}, "e"},
        {"L2Normalization", {}, {"e"}, "f"},
        {"L2Normalization", {{"mode", "channel"}}, {"f"}, "g"},
        {"softmax", {{"axis", "1"}, {"temperature", "0.5"}}, {"g"}, "h"},
        {"log_softmax", {}, {"h"}, "i"},
        {"softmin", {}, {"i"}}},
       /*same_arrays=*/false},
      {"responses", {6, 4, 4}, {{"LRN", {{"nsize", "3"}, {"alpha", "0.1"}}}}},
      {"shuffled channels",
       {6, 4, 4},
       {{"Reshape", {{"shape", "(0, -4, 2, -1, -2)"}}, {}, "a"},
        {"SwapAxis", {{"dim1", "1"}, {"dim2", "2"}}},
        {"Reshape", {{"shape", "(0, -3, -2)"}}, {}, "b"},
        {"SliceChannel", {{"num_outputs", "2"}}, {}, "c"},
        {"elemwise_sub", {}, {"c.0", "c.1"}, "d"},
        {"SliceChannel", {{"num_outputs", "3"}, {"squeeze_axis", "True"}}, {"d"}, "e"},
        {"stack", {{"axis", "2"}}, {"e.0", "e.2"}}}},
      {"batch merged with an axis",
       {6, 4},
       {{"Reshape", {{"shape", "(-3, 0)"}}},
        {"FullyConnected", {{"num_hidden", "5"}}},
        {"Reshape", {{"shape", "(-1, 6, 5)"}}, {}, "back"}}},
      {"slices",
       {6, 7},
       {{"slice",
         {{"begin", "(None, 1, 6)"}, {"end", "(None, 5, None)"}, {"step", "(1, 2, -2)"}},
         {},
         "a"},
        {"slice_axis", {{"axis", "2"}, {"begin", "1"}, {"end", "None"}}, {"data"}, "b"},
        {"slice_axis", {{"axis", "1"}, {"begin", "-3"}, {"end", "-1"}}, {"b"}, "c"},
        {"slice_like", {{"axes", "(2,)"}}, {"c", "a"}, "d"},
        {"transpose", {{"axes", "(0, 2, 1)"}}},
        {"tile", {{"reps", "(1, 2)"}}},
        {"repeat", {{"repeats", "2"}, {"axis", "1"}}},
        {"expand_dims", {{"axis", "1"}}},
        {"squeeze", {{"axis", "(1,)"}}},
        {"Pad", {{"mode", "reflect"}, {"pad_width", "(0, 0, 1, 1, 0, 2)"}}}}},
      {"blocks of places",
       {8, 4, 4},
       {{"depth_to_space", {{"block_size", "2"}}},
        {"Crop", {{"h_w", "(6, 4)"}, {"center_crop", "True"}}},
        {"space_to_depth", {{"block_size", "2"}}},
        {"Pad", {{"mode", "edge"}, {"pad_width", "(0, 0, 0, 0, 1, 0, 0, 2)"}}}}},
      {"reductions",
       {3, 4, 5},
       {{"sum", {{"axis", "(2, 3)"}}, {}, "a"},
        {"max", {{"axis", "(0, 1)"}, {"exclude", "True"}}, {"data"}, "b"},
        {"min", {{"axis", "(-1, -2)"}}, {"data"}, "c"},
        {"prod", {{"axis", "(2, 3)"}}, {"data"}, "d"},
        {"norm", {{"axis", "(2, 3)"}}, {"data"}, "e"},
        {"norm", {{"axis", "(2, 3)"}, {"ord", "1"}}, {"data"}, "f"},
        {"argmax", {{"axis", "1"}, {"keepdims", "True"}}, {"a"}, "g"},
        {"Concat", {}, {"a", "b", "c", "d", "e", "f", "g"}}}},
      {"products",
       {4, 6},
       {{"FullyConnected", {{"num_hidden", "5"}, {"flatten", "False"}}, {}, "a"},
        {"FullyConnected",
         {{"num_hidden", "5"}, {"flatten", "False"}, {"no_bias", "True"}},
         {"data"},
         "b"},
        {"batch_dot", {{"transpose_b", "True"}}, {"a", "b"}, "c"},
        {"linalg_gemm2", {{"alpha", "0.5"}}, {"c", "a"}}}},
      {"attention in rolled windows",  // attention has no converter, but a graph
       {2, 4, 6},
       {{"roll", {{"shift", "(-1, 9)"}, {"axis", "(2, 3)"}}, {}, "a"},
        {"roll", {{"shift", "2"}, {"axis", "-1"}}, {"data"}, "b"},
        {"_arange", {{"start", "1"}, {"stop", "3"}, {"repeat", "2"}}, {}, "c"},
        {"_arange", {{"start", "4"}}, {}, "d"},
        {"Reshape", {{"shape", "(1, 1, 4, 1)"}}, {"c"}, "e"},
        {"Reshape", {{"shape", "(1, 1, 1, 4)"}}, {"d"}, "h"},
        {"broadcast_add", {}, {"e", "h"}, "mask"},
        {"scaled_dot_product_attention", {{"mask", "additive"}}, {"a", "b", "data", "mask"}, "f"},
        {"scaled_dot_product_attention", {{"scale", "0.3"}}, {"b", "data", "a"}, "g"},
        {"elemwise_add", {}, {"f", "g"}}},
       /*same_arrays=*/false},
      {"rows of a table",
       {4},
       {{"_plus_scalar", {{"scalar", "1.5"}}},  // 0.5 to 2.5: rows 0 to 2
        {"Embedding", {{"input_dim", "3"}, {"output_dim", "5"}}}}},
      {"regression",
       {4},
       {{"FullyConnected", {{"num_hidden", "2"}}}, {"LogisticRegressionOutput"}}},
  };
}

executor::BindRequest RequestOf(const Symbol& symbol, const TShape& input) {
  executor::BindRequest request;
  request.is_train = false;
  request.math = Math::kExact;
  request.shapes["data"] = InBatch(input);
  for (const std::string& name : symbol.ListArguments()) {
    if (name == "data" || name.ends_with("label")) request.inputs.insert(name);
  }
  return request;
}

std::vector<double> FirstOutput(Runtime& runtime, const Symbol& symbol, Executor& executor,
                                const TShape& input) {
  const std::vector<TShape> shapes = symbol.InferShape({{"data", InBatch(input)}}).arguments;
  const std::vector<std::string> arguments = symbol.ListArguments();
  std::vector<NDArray> inputs;
  for (const std::string& name : executor.input_names()) {
    const auto at = std::ranges::find(arguments, name) - arguments.begin();
    NDArray array = NDArray::Zeros(runtime, shapes[static_cast<size_t>(at)]);
    if (name == "data") SetValues(array, ValuesFor(name, array.shape().Size()));
    inputs.push_back(array);
  }
  executor.Forward(inputs);
  return GetValues(executor.outputs()[0]);
}

void CheckClose(const std::vector<double>& ours, const std::vector<double>& theirs,
                double tolerance) {
  REQUIRE(ours.size() == theirs.size());
  double largest = 0, difference = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    largest = std::max(largest, std::abs(ours[i]));
    difference = std::max(difference, std::abs(ours[i] - theirs[i]));
  }
  CHECK(difference <= tolerance * largest);
  CHECK(largest > 0);
}

// A case with parameters, its numbers and its ONNX model.
struct Exported {
  std::unique_ptr<Runtime> runtime = NewRuntime();
  Symbol symbol;
  std::map<std::string, NDArray> args, auxs;
  std::vector<double> outputs;
  onnx::Model model;

  explicit Exported(const TripCase& net) : symbol(Build(runtime->operators(), net)) {
    const auto executor = BindWithValues(*runtime, symbol, RequestOf(symbol, net.input));
    outputs = FirstOutput(*runtime, symbol, *executor, net.input);
    for (const auto& [name, array] : executor->args()) args[name] = array.ToPlain();
    for (const auto& [name, array] : executor->auxs()) auxs[name] = array.ToPlain();
    onnx::ExportRequest request;
    request.symbol = symbol;
    request.inputs = {{"data", net.input}};
    request.args = &args;
    request.auxs = &auxs;
    model = onnx::ExportModel(request);
  }

  // Imports a changed model and compares what it gives.
  onnx::ImportedNet CheckSame(const onnx::Model& changed, const TShape& input, double tolerance) {
    const onnx::ImportedNet net = onnx::ImportModel(changed, runtime->operators());
    const Symbol again = onnx::ToSymbol(net, runtime->operators());
    const auto executor = BindWithValues(*runtime, again, RequestOf(again, input));
    const std::map<std::string, NDArray> arrays = onnx::ArraysOf(net, *runtime);
    for (const auto* own : {&executor->args(), &executor->auxs()}) {
      for (const auto& [name, array] : *own) {
        CAPTURE(name);
        REQUIRE(arrays.contains(name));
        NDArray(array).CopyFrom(arrays.at(name));
      }
    }
    CheckClose(outputs, FirstOutput(*runtime, again, *executor, input), tolerance);
    return net;
  }
};

TEST_CASE("nets give the same numbers after export to ONNX and import") {
  for (const TripCase& net : Cases()) {
    CAPTURE(net.name);
    Exported exported(net);
    std::set<std::string> names;  // onnxruntime wants them unique
    for (const onnx::ModelNode& node : exported.model.nodes) CHECK(names.insert(node.name).second);
    const onnx::Model read = onnx::HasOnnxFiles()
                                 ? onnx::ParseModel(onnx::WriteModel(exported.model), net.name)
                                 : exported.model;
    const onnx::ImportedNet imported = exported.CheckSame(read, net.input, 1e-5);
    if (!net.same_arrays) continue;
    for (const auto& [name, array] : exported.args) {
      CAPTURE(name);
      if (!name.ends_with("gamma")) CHECK(imported.arrays.contains(name));
    }
  }
}

TEST_CASE("batch norms are multiplied into the weights before them") {
  int folded = 0;
  for (const TripCase& net : Cases()) {
    CAPTURE(net.name);
    Exported exported(net);
    folded += onnx::FoldBatchNorm(&exported.model);
    exported.CheckSame(exported.model, net.input, 1e-5);
    if (net.name == "classifier") {
      for (const onnx::ModelNode& node : exported.model.nodes)
        CHECK(node.op != "BatchNormalization");
    }
  }
  CHECK(folded == 2);
}

std::set<std::string> NamesOf(const Exported& exported) {
  std::set<std::string> names;
  for (const auto* arrays : {&exported.args, &exported.auxs}) {
    for (const auto& [name, array] : *arrays) names.insert(name);
  }
  return names;
}

TEST_CASE("arrays in float16 take half the bytes and give nearly the same numbers") {
  Exported exported(Cases()[0]);
  onnx::StoreInFloat16(&exported.model, NamesOf(exported));
  for (const auto& [name, array] : exported.model.initializers) {
    CAPTURE(name);
    CHECK((array.type != onnx::ElementType::kFloat || array.Size() < 2));
  }
  exported.CheckSame(exported.model, Cases()[0].input, 5e-3);
}

TEST_CASE("positions beyond 2048 are not rounded to float16") {
  // How many positions come before 2048.5, as a causal mask asks.
  const TripCase net{"positions",
                     {2100},
                     {{"_arange", {{"start", "0"}, {"stop", "2100"}}, {}, "positions"},
                      {"expand_dims", {{"axis", "0"}}, {}, "row"},
                      {"_mul_scalar", {{"scalar", "0"}}, {"data"}, "zeros"},
                      {"_plus_scalar", {{"scalar", "2048.5"}}, {}, "query"},
                      {"broadcast_lesser_equal", {}, {"row", "query"}, "mask"},
                      {"sum", {{"axis", "1"}}}}};
  Exported exported(net);
  CHECK(exported.outputs[0] == 2049);
  onnx::StoreInFloat16(&exported.model, NamesOf(exported));
  exported.CheckSame(exported.model, net.input, 0);
}

TEST_CASE("parameters that float16 cannot hold are refused, whole numbers stay float32") {
  onnx::Model model;
  model.initializers = {{"indices", onnx::Tensor::Floats({3}, {0, 2049, 70000})},
                        {"few", onnx::Tensor::Floats({3}, {0, 1, 2048})},
                        {"weight", onnx::Tensor::Floats({2}, {0.1f, 2049})},
                        {"constant", onnx::Tensor::Floats({2}, {0.1f, 2049})}};
  onnx::StoreInFloat16(&model, {"indices", "few", "weight"});
  std::set<std::string> names;
  for (const auto& [name, array] : model.initializers) names.insert(name);
  CHECK(names == std::set<std::string>{"constant", "few_float16", "indices", "weight_float16"});
  model.initializers = {{"weight", onnx::Tensor::Floats({2}, {0.1f, 70000})}};
  CHECK(MessageOf([&] {
          onnx::StoreInFloat16(&model, {"weight"});
        }).starts_with("'weight' contains 70000, which float16 cannot hold (at most 65504)"));
}

TEST_CASE("variables keep their names, whatever layers before them would call theirs") {
  const auto runtime = NewRuntime();
  const OperatorRegistry& operators = runtime->operators();
  // fc writes its transposed weight as fc_transpose.
  const Symbol fc = Symbol::Create(operators, "FullyConnected", "fc",
                                   {{"num_hidden", "4"}, {"flatten", "False"}, {"no_bias", "True"}},
                                   std::vector{Symbol::Variable("data")});
  const Symbol scale = Symbol::Variable("fc_transpose", {{"__shape__", "(1, 1, 4)"}});
  const std::map<std::string, NDArray> none;
  std::map<std::string, NDArray> args;
  for (const auto& [name, shape] :
       {std::pair("fc_weight", TShape{4, 5}), std::pair("fc_transpose", TShape{1, 1, 4})})
    args[name] = NDArray::Zeros(*runtime, shape);
  onnx::ExportRequest request;
  request.symbol = Symbol::Create(operators, "broadcast_mul", "scaled", {}, std::vector{fc, scale});
  request.inputs = {{"data", TShape{3, 5}}};
  request.args = &args;
  request.auxs = &none;
  const onnx::Model model = onnx::ExportModel(request);
  REQUIRE(model.initializers.contains("fc_transpose"));
  CHECK(model.initializers.at("fc_transpose").dims == std::vector<int64_t>{1, 1, 4});
  for (const onnx::ModelNode& node : model.nodes) CHECK(node.outputs[0] != "fc_transpose");
}

TEST_CASE("a slice along the batch is refused") {
  const TripCase net{"half of two batches",
                     {4},
                     {{"Concat", {{"dim", "0"}}, {"data", "data"}, "both"},
                      {"slice_like", {}, {"both", "data"}, "half"}}};
  CHECK(MessageOf([&] { Exported exported(net); }) ==
        "slice_like 'half' cannot be exported to ONNX: what it takes of axis 0 depends on the "
        "size of the batch");
}

TEST_CASE("integers become float32 by a Cast, and other operators refuse them") {
  const auto runtime = NewRuntime();
  const std::map<std::string, NDArray> none;
  const auto model_of = [&](const TripCase& net) {
    onnx::ExportRequest request;
    request.symbol = Build(runtime->operators(), net);
    request.inputs = {{"data", net.input, DType::kInt32}};
    request.args = request.auxs = &none;
    return onnx::ExportModel(request);
  };
  const onnx::Model model = model_of({"cast", {4}, {{"Cast", {{"dtype", "float32"}}}, {"sqrt"}}});
  REQUIRE(model.nodes.size() == 2);
  CHECK(model.inputs[0].type == onnx::ElementType::kInt32);
  CHECK(model.nodes[0].op == "Cast");
  CHECK(model.nodes[1].inputs == model.nodes[0].outputs);
  CHECK(MessageOf([&] {
          model_of({"negative", {4}, {{"negative"}}});
        }).find("reads 'data', which is int32") != std::string::npos);
}

TEST_CASE("an operator without an equivalent is named with its layer") {
  const auto runtime = NewRuntime();
  const TripCase net{"erfinv", {4}, {{"erfinv", {}, {}, "inverse"}}};
  const Symbol symbol = Build(runtime->operators(), net);
  const std::map<std::string, NDArray> none;
  onnx::ExportRequest request;
  request.symbol = symbol;
  request.inputs = {{"data", net.input}};
  request.args = request.auxs = &none;
  CHECK(MessageOf([&] { onnx::ExportModel(request); }) ==
        "no ONNX equivalent is known here for erfinv 'inverse'");
}

}  // namespace
}  // namespace mxtrain::test
