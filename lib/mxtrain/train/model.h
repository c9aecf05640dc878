// SPDX-License-Identifier: Apache-2.0
#pragma once
// A trained model: symbol, arrays (averages, if the run kept them) and metadata. Loaded from a run
// folder (the best checkpoint, else the last), a checkpoint file, or MXNet's files as PREFIX@7
// (PREFIX-symbol.json and PREFIX-0007.params). In files written by SaveMxnetModel, an attribute
// of the symbol's first input, ignored by MXNet, describes the inputs.
#include <map>
#include <string>
#include <vector>

#include "mxtrain/executor/executor.h"
#include "mxtrain/train/checkpoint.h"

namespace mxtrain {

struct Model {
  std::string file;  // its source
  Symbol symbol;
  // Of PREFIX@7: inputs, labels, class names, pipeline and modes if in the symbol; else names of
  // inputs and labels.
  ModelInfo info;
  std::map<std::string, NDArray> args, auxs;
};

// Throws kFileSystem if missing, kData if damaged, kConfig if symbol and arrays do not match.
// `inputs`: for PREFIX@7, the variables that are inputs. Empty: as the symbol says, else by name.
// Others without arrays are labels if a loss reads them as one, the symbol says so or their names
// end in "label", else missing parameters: kConfig. Throws kUsage for inputs of a model that
// declares its own, and for names that are not such variables.
MXTRAIN_API Model LoadModel(Runtime& runtime, const std::string& where,
                            const std::vector<std::string>& inputs = {});
// The target of a link to a run, such as runs/latest. Other paths are returned unchanged.
MXTRAIN_API std::string FollowLink(const std::string& where);
// The checkpoint file that LoadModel would read, with links followed; "" for MXNet's files. Throws
// like LoadModel.
MXTRAIN_API std::string CheckpointOf(const std::string& where);
// PREFIX@7 -> PREFIX-0007.params. Throws kUsage for anything but PREFIX@NUMBER.
MXTRAIN_API std::string ReferenceParamsFile(const std::string& where);
// Writes PREFIX-symbol.json and PREFIX-0007.params (for PREFIX@7), readable by MXNet 1.x, and
// returns their names.
MXTRAIN_API std::vector<std::string> SaveMxnetModel(const std::string& where, const Model& model);
// Copies a model's arrays into an executor. Throws kConfig for parameters that are missing or
// differ in shape; the executor's arrays in `not_parameters` (labels) are not touched.
MXTRAIN_API void SetParameters(const Model& model, Executor* executor,
                               const std::vector<std::string>& not_parameters);

}  // namespace mxtrain
