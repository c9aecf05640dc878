// SPDX-License-Identifier: Apache-2.0
// Thresholds as outputs of a file: added beside whatever it holds, and only these removed.
#include <doctest/doctest.h>

#include <set>

#include "mxtrain/onnx/thresholds.h"
#include "tests/unit/onnx/small_models.h"

namespace mxtrain::test {
namespace {

std::set<std::string> NamesIn(const Model& model) {
  std::set<std::string> names;
  for (const ModelNode& node : model.nodes) names.insert("node " + node.name);
  for (const auto& [name, tensor] : model.initializers) names.insert("array " + name);
  for (const ModelValue& value : model.outputs) names.insert("output " + value.name);
  return names;
}

// A layer whose names begin as those that AddThresholds takes.
void MakeLayerOfThresholds(Model* model) {
  model->initializers["thresholds_y"] = Zeros({3, 4});
  model->initializers["thresholds_fc_bias"] = Zeros({3});
  model->nodes = {Node("Gemm", {"x", "thresholds_y", "thresholds_fc_bias"}, "thresholds_y_wide",
                       {{"transB", int64_t{1}}}),
                  Node("Relu", {"thresholds_y_wide"}, "y")};
  model->nodes[0].name = "thresholds_fc";
  model->nodes[1].name = "thresholds_y_labels";  // that of the last node added
}

TEST_CASE_FIXTURE(Fixture, "layers named as thresholds stay in the file") {
  MakeLayerOfThresholds(&model);
  const std::set<std::string> before = NamesIn(model);
  for (const char* metadata : {"", "0.5", "[]", "{\"y\": 1}", "{\"y\": [\"a\"]}",
                               "{\"y\": [1, 2, 3]}", "{\"y\": [1, 2", "{\"z\": []}"}) {
    CAPTURE(metadata);
    if (*metadata) model.metadata["thresholds"] = metadata;
    onnx::RemoveThresholds(&model);
    CHECK(NamesIn(model) == before);
  }
  CHECK(Operators() == Ops{"FullyConnected", "Activation"});
}

TEST_CASE_FIXTURE(Fixture, "thresholds take names that are free, and are removed alone") {
  MakeLayerOfThresholds(&model);
  const std::set<std::string> before = NamesIn(model);
  const onnx::OutputThresholds thresholds{{"y", {0.1, 0.5, 1.0 / 3}}};
  CHECK(onnx::AddThresholds(thresholds, &model) ==
        std::map<std::string, std::string>{{"y", "labels"}});
  const std::set<std::string> after = NamesIn(model);
  CHECK(after.size() == before.size() + 5);  // nodes, array and output: no name twice
  CHECK(std::ranges::includes(after, before));
  CHECK(model.initializers.at("thresholds_y").dims == std::vector<int64_t>{3, 4});

  Model others = model;  // the metadata name no such thresholds
  others.metadata["thresholds"] = R"({"y": [0.1, 0.5, 0.25]})";
  onnx::RemoveThresholds(&others);
  CHECK(NamesIn(others) == after);

  model.metadata["thresholds"] = R"({"y": [0.1, 0.5, 0.3333333333333333]})";
  onnx::RemoveThresholds(&model);
  CHECK(NamesIn(model) == before);
  CHECK(Operators() == Ops{"FullyConnected", "Activation"});
}

}  // namespace
}  // namespace mxtrain::test
