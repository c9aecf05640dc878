// SPDX-License-Identifier: Apache-2.0
// MXNet's checkpoints give the same results here. The files are made by
// tests/reference/make_reference_nets.py and not committed; without MXTRAIN_REFERENCE_DIR there is
// nothing to compare with. Loaded models are saved again under MXTRAIN_REFERENCE_DIR/ours, where
// tests/reference/check_ours.py reads them with MXNet.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "mxtrain/base/file.h"
#include "mxtrain/executor/executor.h"
#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/symbol/symbol.h"
#include "tests/support/data_dir.h"

namespace mxtrain {
namespace {

using ArrayMap = std::map<std::string, NDArray>;

ArrayMap ReadArrays(Runtime& runtime, const std::string& path) {
  const NamedArrays file = LoadArrays(runtime, path);
  ArrayMap arrays;
  for (size_t i = 0; i < file.arrays.size(); ++i) arrays[file.names.at(i)] = file.arrays[i];
  return arrays;
}

void Save(const std::string& path, const ArrayMap& arrays) {
  NamedArrays file;
  for (const auto& [name, array] : arrays) {
    file.names.push_back(name);
    file.arrays.push_back(array);
  }
  SaveArrays(path, file);
}

// A net with its parameters ("arg:", "aux:") and a run of it ("in:", "predict:", "train:", "grad:",
// "after:").
struct Case {
  Symbol net;
  ArrayMap params, run;
};

std::unique_ptr<Executor> Bind(Runtime& runtime, const Case& c, bool gradients) {
  Executor::BindRequest request;
  request.is_train = gradients;
  for (const auto& [key, array] : c.run) {
    if (!key.starts_with("in:")) continue;
    request.inputs.insert(key.substr(3));
    request.shapes[key.substr(3)] = array.shape();
    request.types[key.substr(3)] = array.dtype();
  }
  for (const std::string& name : c.net.ListArguments()) {
    if (gradients && c.run.contains("grad:" + name))
      request.grad_req[name] = executor::GradReq::kWrite;
  }
  auto bound = Executor::SimpleBind(runtime, c.net, request);
  for (const auto& [name, array] : bound->args())
    NDArray(array).CopyFrom(c.params.at("arg:" + name));
  for (const auto& [name, array] : bound->auxs())
    NDArray(array).CopyFrom(c.params.at("aux:" + name));
  return bound;
}

std::vector<NDArray> Inputs(const Executor& bound, const Case& c) {
  std::vector<NDArray> inputs;
  for (const std::string& name : bound.input_names()) inputs.push_back(c.run.at("in:" + name));
  return inputs;
}

void CheckClose(const NDArray& ours, const NDArray& theirs, const std::string& what) {
  CAPTURE(what);
  REQUIRE(ours.shape() == theirs.shape());
  const std::vector<float> a = ours.ToVector(), b = theirs.ToVector();
  // Sums of many float32 products differ by their order: relative to the array's largest number.
  float scale = 1, worst = 0;
  for (float value : b) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < a.size(); ++i)
    worst = std::isfinite(a[i]) ? std::max(worst, std::abs(a[i] - b[i])) : INFINITY;
  CHECK(worst <= 1e-4f * scale);
}

void CheckPredictions(Runtime& runtime, const Case& c) {
  auto bound = Bind(runtime, c, false);
  bound->Forward(Inputs(*bound, c));
  for (size_t i = 0; i < bound->outputs().size(); ++i) {
    CheckClose(bound->outputs()[i], c.run.at("predict:" + std::to_string(i)),
               "predict:" + std::to_string(i));
  }
}

void CheckGradients(Runtime& runtime, const Case& c) {
  auto bound = Bind(runtime, c, true);
  bound->Step(Inputs(*bound, c));
  for (const auto& [key, theirs] : c.run) {
    const std::string name = key.substr(key.find(':') + 1);
    if (key.starts_with("train:"))
      CheckClose(bound->outputs().at(static_cast<size_t>(std::stoi(name))), theirs, key);
    if (key.starts_with("grad:")) CheckClose(bound->grad(name), theirs, key);
    if (key.starts_with("after:")) CheckClose(bound->aux(name), theirs, key);
  }
}

// Writes net, parameters and our predictions; with `gradients` also what a step gives of all that
// the case's run has.
void SaveOurs(Runtime& runtime, const Case& c, bool gradients, const std::string& prefix) {
  WriteFileAtomically(prefix + "-symbol.json", c.net.ToJson());
  Save(prefix + "-0001.params", c.params);
  auto bound = Bind(runtime, c, false);
  bound->Forward(Inputs(*bound, c));
  ArrayMap run;
  for (const auto& [key, array] : c.run) {
    if (key.starts_with("in:")) run[key] = array;
  }
  for (size_t i = 0; i < bound->outputs().size(); ++i)
    run["predict:" + std::to_string(i)] = bound->outputs()[i];
  if (gradients) {
    auto trained = Bind(runtime, c, true);
    trained->Step(Inputs(*trained, c));
    for (const auto& [key, array] : c.run) {
      const std::string name = key.substr(key.find(':') + 1);
      if (key.starts_with("train:"))
        run[key] = trained->outputs().at(static_cast<size_t>(std::stoi(name)));
      if (key.starts_with("grad:")) run[key] = trained->grad(name);
      if (key.starts_with("after:")) run[key] = trained->aux(name);
    }
  }
  Save(prefix + "-run.params", run);
}

// A net composed here, with numbers from a simple recurrence.
Case OwnCase(Runtime& runtime) {
  const OperatorRegistry& ops = runtime.operators();
  auto op = [&](const char* type, const std::string& name, const Kwargs& kwargs,
                std::vector<Symbol> inputs) {
    return Symbol::Create(ops, type, name, kwargs, inputs);
  };
  Symbol x = Symbol::Variable("data", {{"__shape__", "(2, 3, 9, 9)"}});
  x = op("Convolution", "conv", {{"kernel", "(3, 3)"}, {"num_filter", "6"}, {"pad", "(1, 1)"}},
         {x});
  x = op("BatchNorm", "bn", {{"fix_gamma", "False"}}, {x});
  x = op("Activation", "relu", {{"act_type", "relu"}}, {x});
  x = op("Pooling", "pool", {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}, {"pool_type", "max"}},
         {x});
  x = op("FullyConnected", "fc", {{"num_hidden", "4"}}, {op("Flatten", "flat", {}, {x})});
  Case c{op("SoftmaxOutput", "softmax", {}, {x}), {}, {}};
  uint32_t state = 1;
  auto filled = [&](const TShape& shape, float low) {
    std::vector<float> values(static_cast<size_t>(shape.Size()));
    for (float& value : values)
      value = low + static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f;
    return NDArray::FromVector(runtime, shape, values);
  };
  const Symbol::Shapes shapes = c.net.InferShape({});
  const auto arguments = c.net.ListArguments(), auxiliaries = c.net.ListAuxiliaryStates();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool input = arguments[i] == "data" || arguments[i] == "softmax_label";
    (input ? c.run["in:" + arguments[i]] : c.params["arg:" + arguments[i]]) =
        filled(shapes.arguments[i], input ? 0.0f : -0.5f);
  }
  for (size_t i = 0; i < auxiliaries.size(); ++i)
    c.params["aux:" + auxiliaries[i]] = filled(shapes.auxiliaries[i], 0.5f);
  return c;
}

}  // namespace

TEST_CASE("checkpoints of MXNet predict and learn the same here" *
          doctest::test_suite("reference") * doctest::skip()) {
  const auto folder = test::ReferenceDir();
  if (!folder) return;
  const std::string dir = *folder, ours = dir + "/ours";
  std::filesystem::create_directories(ours);
  Runtime runtime({}, BuiltinOperators());
  std::istringstream nets(ReadFile(dir + "/nets.txt"));
  int count = 0;
  for (std::string name, kind; nets >> name >> kind; ++count) {
    CAPTURE(name);
    try {
      const Case c{
          Symbol::FromJson(runtime.operators(), ReadFile(dir + "/" + name + "-symbol.json")),
          ReadArrays(runtime, dir + "/" + name + "-0001.params"),
          ReadArrays(runtime, dir + "/" + name + "-run.params")};
      CHECK(Symbol::FromJson(runtime.operators(), c.net.ToJson()).ToJson() == c.net.ToJson());
      CheckPredictions(runtime, c);
      if (kind == "gradients") CheckGradients(runtime, c);
      SaveOurs(runtime, c, kind == "gradients", ours + "/" + name);
    } catch (const Error& error) {
      FAIL_CHECK(std::string(error.what()));
    }
  }
  CHECK(count >= 10);
  SaveOurs(runtime, OwnCase(runtime), false, ours + "/own");
}

}  // namespace mxtrain
