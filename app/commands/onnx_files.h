// SPDX-License-Identifier: Apache-2.0
#pragma once
// `export FILE.onnx`: a model of this program as an ONNX file.
#include <string>
#include <vector>

#include "app/commands/arguments.h"
#include "app/console/console.h"
#include "app/inference/temperatures.h"
#include "app/tasks/task.h"
#include "mxtrain/train/model.h"

namespace mxtrain::commands {

// How another program prepares the input of a model, in one line: the transforms of its pipeline
// ("resize size=256, center_crop size=224") and, of images, colours, orientation, the range of
// values and the order of axes; of a table, the columns of each input and how they are
// standardized.
std::string PreprocessingText(const Model& model);

// What the outputs of a model mean, by their tasks. `batch`: a size that its net can be for.
std::vector<tasks::OutputMeaning> MeaningsOf(const Model& model, int64_t batch);

class OnnxExport {
 public:
  void Declare(Arguments& arguments);  // --with-preprocessing, --fold-batch-norm, --float16
  // Throws kUsage for these flags with a file of another format, and if this build has no ONNX.
  void Check(bool onnx) const;
  // The bytes of the file, which standardizes the numbers of a table itself. The model's outputs
  // depend on no label; `operators` are those it was read with. Throws kConfig for what ONNX cannot
  // express, kUsage for inputs of unknown size. `batch`: as for MeaningsOf. `calibration`: whose
  // temperatures the net has already; with thresholds the file has an output of labels, too.
  std::string Write(Model model, int64_t batch, const inference::HeadCalibration& calibration,
                    const OperatorRegistry& operators, console::Console& console) const;

 private:
  bool with_preprocessing_ = false, fold_batch_norm_ = false, float16_ = false;
};

}  // namespace mxtrain::commands
