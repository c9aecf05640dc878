// SPDX-License-Identifier: Apache-2.0
// mxtrain import FILE
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>

#include "app/commands/command_list.h"
#include "app/config/net_onnx.h"
#include "app/report/output.h"
#include "app/report/output_path.h"
#include "app/session/device_choice.h"
#include "app/session/open_runtime.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/ndarray/safetensors.h"

namespace mxtrain::commands {
namespace {

constexpr const char* kWeightsEnding = ".safetensors";

class Import final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments =
        line.Add("import", "print the net of an ONNX file as a configuration's layers");
    arguments.Option("file", &file_, "an ONNX file").Required().Takes("FILE");
    arguments
        .Option("--size", &size_,
                "shape of one example, such as 3,224,224, if the file leaves it open")
        .Takes("SHAPE");
    arguments
        .Option("--weights", &weights_,
                "write the arrays into this .safetensors file, which the printed configuration "
                "then names")
        .Takes("FILE");
    arguments
        .Option("--loss", &loss_,
                "the layer that follows the scores of a file that ends without one, to train on: "
                "SoftmaxOutput for classes, LogisticRegressionOutput for sets of classes, "
                "LinearRegressionOutput for numbers")
        .OneOf({"SoftmaxOutput", "LogisticRegressionOutput", "LinearRegressionOutput"});
    arguments.Option("--output", &output_, "write the configuration to this file instead of stdout")
        .Takes("FILE");
    arguments.Flag("--overwrite", &overwrite_, "replace existing files");
    arguments.Examples(
        "  mxtrain import resnet18.onnx\n  mxtrain import resnet18.onnx --weights "
        "resnet18.safetensors --loss SoftmaxOutput --output resnet18.yaml\n"
        "  mxtrain train photos.yaml -c resnet18.yaml");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    if (!weights_.empty() && !weights_.ends_with(kWeightsEnding))
      Throw(ErrorKind::kUsage, "--weights {}: the name must end in {}", weights_, kWeightsEnding);
    if (flags.json && !output_.empty())
      Throw(ErrorKind::kUsage, "--output takes the configuration, and --json prints none");
    report::RequireFree(std::array{weights_, output_}, std::array{file_}, overwrite_);
    const auto runtime = session::MakeRuntime(
        flags, 0, session::MakeRegistry(flags.plugins, DeviceType::kCPU), console.log());
    onnx::ImportedNet net = Read(runtime->operators());
    if (!loss_.empty()) AddLoss(&net);
    const std::string renamed = flags.json ? "" : CallInputData(&net);
    onnx::ToSymbol(net, runtime->operators());  // every layer fits
    for (const std::string& note : net.notes) console.Message(LogLevel::kWarning, note);
    if (!weights_.empty())
      Write(weights_, SerializeSafetensors(onnx::ArraysOf(net, *runtime), {{"format", "pt"}}));
    if (flags.json) {
      PrintJson(net);
    } else if (output_.empty()) {
      std::cout << YamlOf(net, renamed);
    } else {
      Write(output_, YamlOf(net, renamed));
    }
    return 0;
  }

 private:
  static void Write(const std::string& path, const std::string& bytes) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    if (!folder.empty()) MakeFolders(folder);
    WriteFileAtomically(path, bytes);
  }

  onnx::ImportedNet Read(const OperatorRegistry& operators) const {
    if (size_.empty()) return config::ImportOnnx(file_, operators);
    return config::ImportOnnx(file_, operators, {{"", TShape::Parse("(" + size_ + ")")}});
  }

  static bool IsTaken(const onnx::ImportedNet& net, const std::string& name) {
    const auto named = [&name](const auto& one) { return one.name == name; };
    return std::ranges::any_of(net.layers, named) || std::ranges::any_of(net.variables, named);
  }

  // After the only output, unless that is a loss.
  void AddLoss(onnx::ImportedNet* net) const {
    if (net->outputs.size() != 1)
      Throw(ErrorKind::kUsage, "--loss: {} has {} outputs, and a loss follows one", file_,
            net->outputs.size());
    const bool has_loss = std::ranges::any_of(net->layers, [&](const auto& layer) {
      return layer.name == net->outputs[0] && layer.op.ends_with("Output");
    });
    if (has_loss) return;
    std::string name = loss_ == "SoftmaxOutput" ? "softmax" : "loss";
    while (IsTaken(*net, name)) name += "_";
    net->layers.push_back({loss_, name, {}, net->outputs, {}});
    net->outputs = {name};
  }

  // The only input gets the name of the images of a configuration. Returns the one that it had, if
  // that is another.
  static std::string CallInputData(onnx::ImportedNet* net) {
    if (net->inputs.size() != 1 || net->inputs[0].name == "data" || IsTaken(*net, "data"))
      return "";
    const std::string name = net->inputs[0].name;
    for (auto& layer : net->layers) std::ranges::replace(layer.inputs, name, std::string("data"));
    std::ranges::replace(net->outputs, name, std::string("data"));
    net->inputs[0].name = "data";
    return name;
  }

  std::string YamlOf(const onnx::ImportedNet& net, const std::string& renamed) const {
    const config::NetConfig written = config::WrittenNetOf(net);
    std::vector<config::Member> members;
    const auto add = [&members](const char* key, const config::Value& value) {
      if (!value.is_null()) members.push_back({key, {}, value});
    };
    add("input", written.input);
    add("inputs", written.inputs);
    add("layers", written.layers);
    add("outputs", written.outputs);
    std::vector<config::Member> top{{"net", {}, config::Value::Map(std::move(members))}};
    if (!weights_.empty()) {
      const auto file = config::Value::Map({{"file", {}, config::Value::Scalar(weights_)}});
      top.push_back({"train", {}, config::Value::Map({{"weights", {}, file}})});
    }
    const std::string of_input =
        renamed.empty() ? "" : format(" Its input {} is called data.", report::Printable(renamed));
    return format("# From {}.{}\n{}", report::Printable(file_), of_input,
                  config::ToYaml(config::Value::Map(std::move(top))));
  }

  void PrintJson(const onnx::ImportedNet& net) const {
    Json layers = Json::array();
    for (const auto& layer : net.layers) {
      Json params = Json::object();
      for (const auto& [key, value] : layer.params) params[key] = value;
      layers.push_back({{"name", layer.name},
                        {"operator", layer.op},
                        {"inputs", layer.inputs},
                        {"parameters", params}});
    }
    int64_t elements = 0;
    for (const auto& [name, array] : net.arrays) elements += array.Size();
    std::cout << report::JsonText({{"layers", layers},
                                   {"outputs", net.outputs},
                                   {"arrays", net.arrays.size()},
                                   {"elements", elements},
                                   {"metadata", net.metadata}})
              << std::endl;
  }

  std::string file_, size_, weights_, output_, loss_;
  bool overwrite_ = false;
};

}  // namespace

MXTRAIN_COMMAND(import, list) {
  list.Add(HelpGroup::kModel, 70, std::make_unique<Import>());
}

}  // namespace mxtrain::commands
