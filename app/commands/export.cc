// mxtrain export MODEL OUTPUT
#include <iostream>

#include "app/commands/device_flag.h"
#include "app/commands/open_model.h"
#include "app/commands/pipeline_spec.h"
#include "app/report/output.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/ndarray/safetensors.h"

namespace mxtrain::commands {
namespace {

constexpr const char* kSafetensors = ".safetensors";

class Export final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("export", "a model's arrays for other programs");
    arguments.Option("model", &model_, "run folder, checkpoint file, or PREFIX@N for MXNet's files").Required().Takes("MODEL");
    arguments.Option("output", &output_, "FILE.safetensors: parameters and auxiliary states; PREFIX@N: net and arrays as MXNet's files")
        .Required()
        .Takes("OUTPUT");
    arguments.Examples("  mxtrain export runs/latest lenet.safetensors\n  mxtrain export runs/latest zoo/lenet@10");
  }

  int Run(const CommonFlags& flags, report::Console& console) override {
    const bool safetensors = output_.ends_with(kSafetensors);
    if (!safetensors && output_.find('@') == std::string::npos) {
      Throw(ErrorKind::kUsage, "'{}' says no format: FILE.safetensors, or PREFIX@N for MXNet's files", output_);
    }
    auto [runtime, model] = OpenModel(WithoutAutoGpu(flags), model_, console);
    std::vector<std::string> files;
    if (safetensors) {
      std::map<std::string, NDArray> arrays = model.args;
      arrays.insert(model.auxs.begin(), model.auxs.end());
      WriteFileAtomically(output_, SerializeSafetensors(arrays, {{"format", "pt"}, {"net", model.symbol.ToJson()}, {"pipeline", model.info.pipeline},
                                                                 {"classes", Json(model.info.class_names).dump()}}));
      files = {output_};
    } else {
      files = SaveReferenceModel(output_, model.symbol, model.args, model.auxs);
      const std::string labels = WriteLabels(model);
      if (!labels.empty()) files.push_back(labels);
      if (!model.info.pipeline.empty()) console.Message(LogLevel::kInfo, HowToUse(model, labels));
    }
    if (flags.json) {
      std::cout << report::JsonText({{"files", files}}) << std::endl;
    } else {
      for (const std::string& file : files) std::cout << file << "\n";
    }
    return 0;
  }

 private:
  // PREFIX-labels.txt, a class a line; "" for a model without names.
  std::string WriteLabels(const Model& model) const {
    if (model.info.class_names.empty()) return "";
    std::string text;
    for (const std::string& name : model.info.class_names) text += name + "\n";
    const std::string path = output_.substr(0, output_.rfind('@')) + "-labels.txt";
    WriteFileAtomically(path, text);
    return path;
  }

  // The reference system's files say nothing of how pictures are prepared: the flags that do.
  std::string HowToUse(const Model& model, const std::string& labels) const {
    std::string flags;
    const TShape& input = model.info.inputs.at(0).shape;
    if (input.ndim() == 3) flags += format(" --size {},{},{}", input[0], input[1], input[2]);
    for (const io::TransformSpec& transform : PipelineSpec::FromJson(model.info.pipeline).transforms) {
      if (transform.name != "normalize") continue;
      for (auto [key, value] : transform.kwargs) {
        std::erase_if(value, [](char c) { return c == ' ' || c == '(' || c == ')'; });
        flags += format(" --{} {}", key, value);
      }
    }
    if (!labels.empty()) flags += " --labels " + report::QuoteShell(labels);
    return format("these files do not say how pictures are prepared; to use them as the run did: mxtrain infer {} PICTURES{}", report::QuoteShell(output_),
                  flags);
  }

  std::string model_, output_;
};

}  // namespace

std::unique_ptr<Command> MakeExport() { return std::make_unique<Export>(); }

}  // namespace mxtrain::commands
