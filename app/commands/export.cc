// mxtrain export MODEL OUTPUT
#include <iostream>

#include "app/commands/open_model.h"
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
    arguments.Option("model", &model_, "run folder, checkpoint file, or PREFIX@N for the reference system's files").Required().Takes("MODEL");
    arguments.Option("output", &output_, "FILE.safetensors: parameters and auxiliary states; PREFIX@N: net and arrays as the reference system's files")
        .Required()
        .Takes("OUTPUT");
    arguments.Examples("  mxtrain export runs/latest lenet.safetensors\n  mxtrain export runs/latest zoo/lenet@10");
  }

  int Run(const CommonFlags& flags, report::Console& console) override {
    const bool safetensors = output_.ends_with(kSafetensors);
    if (!safetensors && output_.find('@') == std::string::npos) {
      Throw(ErrorKind::kUsage, "'{}' says no format: FILE.safetensors, or PREFIX@N for the reference system's files", output_);
    }
    auto [runtime, model] = OpenModel(flags, model_, console);
    std::vector<std::string> files;
    if (safetensors) {
      std::map<std::string, NDArray> arrays = model.args;
      arrays.insert(model.auxs.begin(), model.auxs.end());
      WriteFileAtomically(output_, SerializeSafetensors(arrays, {{"format", "pt"}, {"net", model.symbol.ToJson()}}));
      files = {output_};
    } else {
      files = SaveReferenceModel(output_, model.symbol, model.args, model.auxs);
    }
    if (flags.json) {
      std::cout << report::JsonText({{"files", files}}) << std::endl;
    } else {
      for (const std::string& file : files) std::cout << file << "\n";
    }
    return 0;
  }

 private:
  std::string model_, output_;
};

}  // namespace

std::unique_ptr<Command> MakeExport() { return std::make_unique<Export>(); }

}  // namespace mxtrain::commands
