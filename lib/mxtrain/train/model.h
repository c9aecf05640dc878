#pragma once
// A model to use: its symbol, arrays (averages, where the run kept them) and what else it carries. From a run folder (the best checkpoint, else
// the last), a checkpoint file, or MXNet's files as PREFIX@7 (PREFIX-symbol.json and PREFIX-0007.params). Where SaveReferenceModel wrote these, the
// symbol carries what the model says of its inputs, as an attribute of the first one, which MXNet passes over.
#include <map>
#include <string>
#include <vector>

#include "mxtrain/executor/executor.h"
#include "mxtrain/train/checkpoint.h"

namespace mxtrain {

struct Model {
  std::string file;  // that it came from
  Symbol symbol;
  ModelInfo info;    // of PREFIX@7: inputs, labels, class names and pipeline, where the symbol carries them; else names of inputs and labels
  std::map<std::string, NDArray> args, auxs;
};

// Throws kFileSystem when there is nothing, kData when it is damaged, kConfig when symbol and arrays do not go together. `inputs`: of PREFIX@7, the
// variables that are its inputs, the others without arrays being labels; empty: as the symbol says, else by their names. Throws kUsage for inputs of
// a model that says its own, and for names that are no such variables.
MXTRAIN_API Model LoadModel(Runtime& runtime, const std::string& where, const std::vector<std::string>& inputs = {});
// What a link to a run, as runs/latest, leads to: the run's own path. Other paths as they are.
MXTRAIN_API std::string FollowLink(const std::string& where);
// The checkpoint file that LoadModel would read, of a link that of the run which it leads to; "" for the reference system's files. Throws as
// LoadModel does.
MXTRAIN_API std::string CheckpointOf(const std::string& where);
// PREFIX@7 -> PREFIX-0007.params. Throws kUsage for what is no PREFIX@NUMBER.
MXTRAIN_API std::string ReferenceParamsFile(const std::string& where);
// Writes PREFIX-symbol.json and PREFIX-0007.params (of PREFIX@7), which MXNet 1.x reads, and returns their names.
MXTRAIN_API std::vector<std::string> SaveReferenceModel(const std::string& where, const Model& model);
// Copies a model's arrays into an executor. Throws kConfig for parameters that the model lacks or that differ in shape; arrays of the executor
// named in `not_parameters` (labels) are left alone.
MXTRAIN_API void SetParameters(const Model& model, Executor* executor, const std::vector<std::string>& not_parameters);

}  // namespace mxtrain
