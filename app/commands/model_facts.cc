// SPDX-License-Identifier: Apache-2.0
#include "app/commands/model_facts.h"

#include <sstream>

#include "app/session/pipeline_spec.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::commands {
namespace {

constexpr size_t kMostFacts = size_t{64} << 20;

std::vector<std::string> ReadLines(const std::string& path) {
  std::istringstream file(ReadFile(path, kMostFacts, Readable::kFileOrPipe));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Resizes images to the input's size (for square inputs with a center crop) and normalizes them.
session::PipelineSpec Prepare(const TShape& input, const std::string& mean,
                              const std::string& std) {
  session::PipelineSpec spec;
  if (input[1] == input[2]) {
    // Of the shorter side.
    spec.transforms.push_back({"resize", {{"size", params::Print(input[1])}}});
    spec.transforms.push_back({"center_crop", {{"size", params::Print(input[1])}}});
  } else {
    spec.transforms.push_back({"resize", {{"size", params::Print(TShape{input[1], input[2]})}}});
  }
  Kwargs numbers;
  if (!mean.empty()) numbers.emplace_back("mean", mean);
  if (!std.empty()) numbers.emplace_back("std", std);
  if (!numbers.empty()) spec.transforms.push_back({"normalize", numbers});
  return spec;
}

}  // namespace

void DeclareInputs(Arguments& arguments, std::vector<std::string>* inputs) {
  arguments
      .Option("--input", inputs,
              "for PREFIX@N: a variable of the net that is an input; others without an array must "
              "be labels; may be repeated")
      .Takes("NAME")
      .Repeats();
}

void ModelFacts::Declare(Arguments& arguments) {
  arguments
      .Option(
          "--input", &inputs_,
          "NAME=FILE.npy: an array for an input of the net, in place of images and tables: one "
          "example after another, as the net reads them, without any transform. NAME alone, for "
          "PREFIX@N: a variable of the net that is an input; others without an array must be "
          "labels. May be repeated")
      .Takes("NAME=FILE")
      .Repeats();
  arguments
      .Option("--labels", &labels_,
              "file with one class name per line, for models without class names")
      .Takes("FILE");
  arguments
      .Option("--size", &size_,
              "C,H,W of the input, for models that do not define their preprocessing: images are "
              "resized and center-cropped")
      .Takes("C,H,W");
  arguments
      .Option("--mean", &mean_,
              "with --size: mean per channel; the net gets (pixel / 255 - mean) / std")
      .Takes("R,G,B");
  arguments.Option("--std", &std_, "standard deviation per channel, as --mean").Takes("R,G,B");
}

inference::InputArrays ModelFacts::TakeArrays() {
  inference::InputArrays arrays = inference::InputArrays::Take(&inputs_);
  if (!arrays.empty() && !(size_ + mean_ + std_).empty())
    Throw(ErrorKind::kUsage,
          "--size, --mean and --std prepare images; arrays of --input NAME=FILE are taken as they "
          "are");
  return arrays;
}

void ModelFacts::Complete(Model* model, console::Console& console) const {
  ModelInfo& info = model->info;
  const bool prepares = !size_.empty() || !mean_.empty() || !std_.empty();
  if (prepares && !info.config.empty()) {
    Throw(ErrorKind::kUsage,
          "{} defines its own preprocessing; --size, --mean and --std are for files that do not",
          model->file);
  }
  if (size_.empty() && prepares) Throw(ErrorKind::kUsage, "--mean and --std need --size C,H,W");
  if (prepares && !info.pipeline.empty()) {
    console.Message(LogLevel::kWarning,
                    format("{} says how its images are prepared; --size replaces all of it: size, "
                           "cropping and normalization",
                           model->file));
  }
  if (prepares) {
    const TShape shape = TShape::Parse(size_);
    for (InputInfo& input : info.inputs) input.shape = shape;
    if (shape.ndim() == 3) info.pipeline = Prepare(shape, mean_, std_).ToJson();
  }
  if (!labels_.empty()) info.class_names = ReadLines(labels_);
}

void DeclareModel(Arguments& arguments, std::string* model) {
  arguments.Option("model", model, "run folder, checkpoint file, or PREFIX@N for MXNet's files")
      .Required()
      .Takes("MODEL");
}

}  // namespace mxtrain::commands
