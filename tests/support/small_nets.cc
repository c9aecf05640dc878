// SPDX-License-Identifier: Apache-2.0
#include "tests/support/small_nets.h"

#include <functional>

#include "mxtrain/base/json.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Creates layers by name on one registry.
class Builder {
 public:
  explicit Builder(const OperatorRegistry& registry) : registry_(registry) {}
  Symbol Layer(const std::string& op, const std::string& name, const std::vector<Symbol>& inputs,
               const Kwargs& kwargs = {}, const std::map<std::string, Symbol>& named = {}) const {
    return Symbol::Create(registry_, op, name, kwargs, inputs, named);
  }
  Symbol Relu(const std::string& name, const Symbol& x) const {
    return Layer("Activation", name, {x}, {{"act_type", "relu"}});
  }
  Symbol Dense(const std::string& name, const Symbol& x, int hidden,
               const std::map<std::string, Symbol>& named = {}) const {
    return Layer("FullyConnected", name, {x}, {{"num_hidden", std::to_string(hidden)}}, named);
  }
  Symbol Conv(const std::string& name, const Symbol& x, int filters, int kernel) const {
    const int pad = kernel / 2;
    return Layer("Convolution", name, {x},
                 {{"num_filter", std::to_string(filters)},
                  {"kernel", format("({}, {})", kernel, kernel)},
                  {"pad", format("({}, {})", pad, pad)}});
  }
  Symbol Norm(const std::string& name, const Symbol& x) const {
    return Layer("BatchNorm", name, {x}, {{"fix_gamma", "False"}, {"eps", "0.001"}});
  }
  Symbol Pool(const std::string& name, const Symbol& x, const char* type,
              const char* stride) const {
    return Layer(
        "Pooling", name, {x},
        {{"pool_type", type}, {"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"stride", stride}});
  }
  Symbol Softmax(const std::string& name, const Symbol& x) const {
    return Layer("SoftmaxOutput", name, {x});
  }

 private:
  const OperatorRegistry& registry_;
};

SmallNet Mlp(const Builder& b) {
  const Symbol data = Symbol::Variable("data");
  Symbol x = b.Layer("Activation", "tanh1", {b.Dense("fc1", data, 9)}, {{"act_type", "tanh"}});
  x = b.Relu("relu2", b.Dense("fc2", x, 7));
  x = b.Dense("fc3", x, 4);
  return {"mlp", b.Softmax("softmax", x), x, {{"data", {6, 5}}}, {{"softmax_label", {6}}}, 4};
}

SmallNet Residual(const Builder& b) {
  const Symbol data = Symbol::Variable("data");
  const Symbol stem = b.Relu("stem_relu", b.Norm("stem_bn", b.Conv("stem", data, 8, 3)));
  const Symbol left = b.Norm("left_bn", b.Conv("left", stem, 8, 3));
  const Symbol sum = b.Relu("sum_relu", b.Layer("elemwise_add", "sum", {left, stem}));
  const Symbol again = b.Relu(
      "again_relu",
      b.Layer("elemwise_add", "again", {b.Norm("right_bn", b.Conv("right", sum, 8, 1)), sum}));
  const Symbol x =
      b.Dense("fc", b.Layer("Flatten", "flat", {b.Pool("pool", again, "avg", "(2, 2)")}), 3);
  return {
      "residual", b.Softmax("softmax", x), x, {{"data", {4, 3, 6, 6}}}, {{"softmax_label", {4}}},
      3};
}

SmallNet Inception(const Builder& b) {
  const Symbol data = Symbol::Variable("data");
  const Symbol stem = b.Relu("stem_relu", b.Conv("stem", data, 4, 3));
  const Symbol a = b.Relu("a_relu", b.Conv("a", stem, 3, 1));
  const Symbol c = b.Relu("c_relu", b.Conv("c", b.Relu("c0_relu", b.Conv("c0", stem, 2, 1)), 5, 3));
  const Symbol p = b.Conv("p", b.Pool("pool", stem, "max", "(1, 1)"), 2, 1);
  const Symbol cat = b.Layer("Concat", "cat", {a, c, p}, {{"num_args", "3"}});
  const Symbol x = b.Dense("fc", b.Pool("down", cat, "max", "(2, 2)"), 3);
  return {"inception",
          b.Softmax("softmax", x),
          x,
          {{"data", {3, 2, 5, 5}}},
          {{"softmax_label", {3}}},
          3};
}

SmallNet Shared(const Builder& b) {
  const std::map<std::string, Symbol> parameters{{"weight", Symbol::Variable("tower_weight")},
                                                 {"bias", Symbol::Variable("tower_bias")}};
  const Symbol left =
      b.Relu("left_relu", b.Dense("left", Symbol::Variable("left_data"), 6, parameters));
  const Symbol right =
      b.Relu("right_relu", b.Dense("right", Symbol::Variable("right_data"), 6, parameters));
  const Symbol gap = b.Layer("elemwise_sub", "gap", {left, right});
  const Symbol x = b.Dense("fc", b.Layer("square", "square", {gap}), 2);
  return {"shared",
          b.Softmax("softmax", x),
          x,
          {{"left_data", {5, 4}}, {"right_data", {5, 4}}},
          {{"softmax_label", {5}}},
          2};
}

SmallNet Several(const Builder& b) {
  const Symbol trunk = b.Relu("trunk_relu", b.Dense("trunk", Symbol::Variable("data"), 8));
  const Symbol first = b.Dense("first", trunk, 3),
               second = b.Dense("second", b.Layer("tanh", "bend", {trunk}), 2);
  const Symbol third =
      b.Layer("mean", "third", {b.Layer("square", "third_square", {trunk})}, {{"axis", "1"}});
  const std::vector<Symbol> losses{
      b.Softmax("softmax", first), b.Layer("LinearRegressionOutput", "linear", {second}),
      b.Layer("MakeLoss", "penalty", {third}, {{"grad_scale", "0.1"}})};
  const std::vector<Symbol> features{first, second, third};
  return {"several",
          Symbol::Group(losses),
          Symbol::Group(features),
          {{"data", {6, 5}}},
          {{"softmax_label", {6}}, {"linear_label", {6, 2}}},
          3};
}

}  // namespace

std::vector<SmallNet> SmallNets(const OperatorRegistry& registry) {
  const Builder b(registry);
  return {Mlp(b), Residual(b), Inception(b), Shared(b), Several(b)};
}

SmallNet DropoutNet(const OperatorRegistry& registry) {
  const Builder b(registry);
  Symbol x = b.Relu("relu1", b.Norm("bn1", b.Conv("conv1", Symbol::Variable("data"), 4, 3)));
  x = b.Layer("Dropout", "drop", {b.Pool("pool", x, "max", "(2, 2)")}, {{"p", "0.3"}});
  x = b.Dense("fc", x, 3);
  return {"dropout", b.Softmax("softmax", x), x, {{"data", {8, 1, 6, 6}}}, {{"softmax_label", {8}}},
          3};
}

Symbol Grouped(const OperatorRegistry& registry, const Symbol& symbol,
               const std::function<std::string(int)>& group_of) {
  Json json = Json::parse(symbol.ToJson());
  int number = 0;
  for (Json& node : json.at("nodes")) {
    if (node.at("op") == "null") continue;
    if (const std::string group = group_of(number++); !group.empty())
      node["attrs"]["__ctx_group__"] = group;
  }
  return Symbol::FromJson(registry, json.dump());
}

Symbol InTurns(const OperatorRegistry& registry, const Symbol& symbol) {
  return Grouped(registry, symbol, [](int i) { return i % 2 == 0 ? "a" : "b"; });
}

std::unique_ptr<Runtime> NewRuntime(const std::string& engine, int threads, uint64_t seed,
                                    int cpu_workers) {
  RuntimeOptions options;
  options.engine = engine;
  options.threads = threads;
  options.cpu_workers = cpu_workers;
  options.seed = seed;
  // The registry lives as long as the process: no ownership.
  return std::make_unique<Runtime>(
      options, std::shared_ptr<const OperatorRegistry>(std::shared_ptr<void>(), &TestRegistry()));
}

std::vector<double> ValuesFor(const std::string& name, int64_t size, int classes) {
  const uint64_t seed = std::hash<std::string>()(name);
  return classes > 0 ? Labels(classes)(size, seed) : Uniform(-1, 1)(size, seed);
}

void SetValues(NDArray array, const std::vector<double>& values) {
  std::vector<char> bytes(values.size() * static_cast<size_t>(SizeOf(array.dtype())));
  WriteValues(values, array.dtype(), bytes.data());
  array.CopyFromHost(bytes.data(), static_cast<int64_t>(bytes.size()));
}

std::vector<double> GetValues(const NDArray& array) {
  std::vector<char> bytes(static_cast<size_t>(array.shape().Size() * SizeOf(array.dtype())));
  array.CopyToHost(bytes.data(), static_cast<int64_t>(bytes.size()));
  return ReadValues(bytes.data(), array.dtype(), array.shape().Size());
}

std::vector<NDArray> MakeInputs(Runtime& runtime, const SmallNet& net,
                                const std::vector<std::string>& names, DType type,
                                const std::string& salt) {
  std::vector<NDArray> inputs;
  for (const std::string& name : names) {
    const bool label = net.labels.contains(name);
    const TShape& shape = label ? net.labels.at(name) : net.data.at(name);
    inputs.emplace_back(runtime, shape, type);
    SetValues(inputs.back(),
              ValuesFor(name + salt, shape.Size(), label && shape.ndim() == 1 ? net.classes : 0));
  }
  return inputs;
}

executor::BindRequest RequestFor(const SmallNet& net, const Symbol& symbol, DType type) {
  executor::BindRequest request;
  request.namesake = 0;  // tests compare executors of one net
  for (const std::string& name : symbol.ListArguments()) {
    const bool data = net.data.contains(name);
    if (data || net.labels.contains(name)) {
      request.inputs.insert(name);
      request.shapes[name] = data ? net.data.at(name) : net.labels.at(name);
      request.types[name] = type;
    } else {
      request.grad_req[name] = executor::GradReq::kWrite;
    }
  }
  return request;
}

void SetParameters(const Executor& executor) {
  for (const auto* arrays : {&executor.args(), &executor.auxs()}) {
    for (const auto& [name, array] : *arrays) {
      const bool positive = name.ends_with("_gamma") || name.ends_with("_var");
      std::vector<double> values = ValuesFor(name, array.shape().Size());
      for (double& v : values) v = positive ? 1.25 + v / 2 : v / 2;
      NDArray plain(array.runtime(), array.shape(), array.dtype());
      SetValues(plain, values);
      NDArray(array).CopyFrom(plain);
    }
  }
}

std::unique_ptr<Executor> BindWithValues(Runtime& runtime, const Symbol& symbol,
                                         const executor::BindRequest& request) {
  auto executor = Executor::SimpleBind(runtime, symbol, request);
  SetParameters(*executor);
  return executor;
}

Result ResultOf(const Executor& executor) {
  Result result;
  for (size_t i = 0; i < executor.outputs().size(); ++i)
    result[format("output {}", i)] = GetValues(executor.outputs()[i]);
  for (const auto& [name, array] : executor.grads())
    result["gradient of " + name] = GetValues(array);
  for (const auto& [name, array] : executor.auxs()) result[name] = GetValues(array);
  return result;
}

}  // namespace mxtrain::test
