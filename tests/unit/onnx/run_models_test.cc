// SPDX-License-Identifier: Apache-2.0
// Models of files, imported and run.
//
// Where MXTRAIN_ONNX_MODELS names a folder, the test runs the models that its file `list` names, a
// name per line, from the line MXTRAIN_ONNX_FROM on: NAME.onnx with the inputs of NAME.safetensors
// ("input 0", ...). It writes NAME.outputs ("output 0", ...) or NAME.refused, the message, and
// appends each name to `begun` first. tests/reference/check_onnx_backend.py compares.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/executor/executor.h"
#include "mxtrain/ndarray/safetensors.h"
#include "mxtrain/onnx/import.h"
#include "mxtrain/onnx/model_file.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/onnx/small_models.h"

namespace mxtrain::test {
namespace {

using Arrays = std::map<std::string, NDArray>;

// The lengths after the batch, of every input.
onnx::ImportOptions OptionsFor(const Model& model, const Arrays& given) {
  onnx::ImportOptions options;
  options.loss = false;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const auto array = given.find(format("input {}", i));
    if (array == given.end() || array->second.shape().ndim() == 0) continue;
    const TShape& shape = array->second.shape();
    options.shapes[model.inputs[i].name] =
        TShape(std::span<const int64_t>(shape.begin() + 1, shape.end()));
  }
  return options;
}

// What the net gives for the inputs, by "output 0", ...
Arrays OutputsOf(Runtime& runtime, const Model& model, const onnx::ImportedNet& net,
                 const Arrays& given) {
  const Symbol symbol = onnx::ToSymbol(net, runtime.operators());
  executor::BindRequest request;
  request.is_train = false;
  request.math = Math::kExact;
  Arrays inputs;
  const std::vector<std::string> arguments = symbol.ListArguments();
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    const std::string& name = net.inputs[i].name;
    if (std::ranges::find(arguments, name) == arguments.end()) continue;  // only its shape is read
    const auto at = std::ranges::find(model.inputs, net.inputs[i].in_file, &ModelValue::name);
    inputs[name] = given.at(format("input {}", at - model.inputs.begin()));
    request.inputs.insert(name);
    request.shapes[name] = inputs[name].shape();
  }
  const auto executor = Executor::SimpleBind(runtime, symbol, request);
  const Arrays arrays = onnx::ArraysOf(net, runtime);
  for (const auto* own : {&executor->args(), &executor->auxs()}) {
    for (const auto& [name, array] : *own) {
      if (!inputs.contains(name)) NDArray(array).CopyFrom(arrays.at(name));
    }
  }
  std::vector<NDArray> fed;
  for (const std::string& name : executor->input_names()) fed.push_back(inputs.at(name));
  executor->Forward(fed);
  Arrays outputs;
  for (size_t i = 0; i < executor->outputs().size(); ++i) {
    const NDArray plain = executor->outputs()[i].ToPlain();
    plain.WaitToRead();
    outputs[format("output {}", i)] = plain;
  }
  return outputs;
}

Arrays ReadArrays(Runtime& runtime, const std::string& path) {
  const NamedArrays read = DeserializeSafetensors(runtime, ReadFile(path), path);
  Arrays arrays;
  for (size_t i = 0; i < read.names.size(); ++i) arrays[read.names[i]] = read.arrays[i];
  return arrays;
}

// With a batch of any size, or else of the sizes in the file and, where it leaves them open, of the
// inputs.
void RunModel(Runtime& runtime, const std::string& path) {
  std::string refused;
  for (const bool any_batch : {true, false}) {
    try {
      Model model = onnx::ReadModel(path + ".onnx");
      const Arrays given = ReadArrays(runtime, path + ".safetensors");
      for (size_t i = 0; i < model.inputs.size() && !any_batch; ++i) {
        const auto array = given.find(format("input {}", i));
        ModelValue& input = model.inputs[i];
        const bool open = !input.dims.empty() && input.dims[0] == ModelValue::kDynamic;
        if (open && array != given.end() && array->second.shape().ndim() > 0)
          input.dims[0] = array->second.shape()[0];
      }
      onnx::ImportOptions options = OptionsFor(model, given);
      options.any_batch = any_batch;
      const onnx::ImportedNet net = onnx::ImportModel(model, runtime.operators(), options);
      const std::string batch = any_batch ? "any" : "of the file";
      return WriteFileAtomically(
          path + ".outputs",
          SerializeSafetensors(OutputsOf(runtime, model, net, given), {{"batch", batch}}));
    } catch (const Error& e) {
      refused = e.what();
    }
  }
  WriteFileAtomically(path + ".refused", refused);
}

void RunFolder(Runtime& runtime, const std::filesystem::path& folder, int from) {
  std::ifstream list(folder / "list");
  std::ofstream begun(folder / "begun", std::ios::app);
  std::string name;
  for (int line = 0; std::getline(list, name); ++line) {
    if (line < from) continue;
    begun << name << std::endl;
    RunModel(runtime, (folder / name).string());
  }
}

TEST_CASE_FIXTURE(Fixture, "models of a folder are imported and run") {
  if (!onnx::HasOnnxFiles()) return;
  if (const char* folder = std::getenv("MXTRAIN_ONNX_MODELS")) {
    const char* from = std::getenv("MXTRAIN_ONNX_FROM");
    return RunFolder(*runtime, folder, from ? std::atoi(from) : 0);
  }
  const TempDir folder;
  const std::string path = folder.path();
  const auto write = [&path](const std::string& file, const std::string& bytes) {
    WriteFileAtomically(path + "/" + file, bytes);
  };
  const std::string inputs =
      SerializeSafetensors({{"input 0", NDArray::FromVector(*runtime, {1, 4}, {-1, 2, -3, 4})}});
  model.nodes = {Node("Relu", {"x"}, "y")};
  write("right.onnx", onnx::WriteModel(model));
  write("right.safetensors", inputs);
  model.nodes = {Node("NoSuchOperator", {"x"}, "y")};
  write("refused.onnx", onnx::WriteModel(model));
  write("refused.safetensors", inputs);
  write("list", "right\nrefused\n");
  RunFolder(*runtime, path, 0);
  CHECK(GetValues(ReadArrays(*runtime, path + "/right.outputs").at("output 0")) ==
        std::vector<double>{0, 2, 0, 4});
  CHECK(ReadFile(path + "/refused.refused").find("NoSuchOperator") != std::string::npos);
  CHECK(ReadFile(path + "/begun") == "right\nrefused\n");
}

}  // namespace
}  // namespace mxtrain::test
