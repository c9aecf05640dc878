// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by `eval`, `infer` and `export`: opening a model and images named by the user.
#include <memory>
#include <string>
#include <vector>

#include "app/inference/input_arrays.h"
#include "app/inference/temperatures.h"
#include "app/session/pipeline_spec.h"
#include "app/session/request.h"
#include "mxtrain/base/log.h"
#include "mxtrain/io/source.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/train/model.h"

namespace mxtrain::inference {

struct OpenedModel {
  std::unique_ptr<Runtime> runtime;
  Model model;
  int64_t only_batch = 0;           // the one size of a batch that the net is for; 0: any
  std::vector<std::string> unread;  // inputs of an ONNX file that nothing reads
  HeadCalibration calibration;      // of `eval --calibrate`: the net divides logits by temperatures
};

// The files that `where` names as a model, or its run folder, and those that are read with them.
std::vector<std::string> FilesOf(const std::string& where);

// The names of a model's inputs, read or not, and labels.
std::vector<std::string> DeclaredBy(const OpenedModel& opened);

// The outputs of the net for a batch of this size.
Symbol::Shapes ShapesOf(const Model& model, int64_t batch);

// For a net of one size of the batch, which runs once: throws kData for another number of examples,
// kUsage for another --batch (0: not given).
void CheckOnlyBatch(const OpenedModel& opened, int64_t examples, int64_t wanted);

// The model, in a runtime with only the plug-ins of the flags. If `where` is a link such as
// runs/latest, its target is reported. Throws as LoadModel, and kConfig if the model was trained
// with a plug-in and no flag gives a file of that name. The net divides logits by the temperatures
// beside the checkpoint. `inputs`: as in LoadModel. An ONNX file is
// no model here.
OpenedModel OpenModel(const session::ComputeOptions& flags, const std::string& where,
                      const std::vector<std::string>& inputs, const std::shared_ptr<Log>& log);

// The same, and an ONNX file too: its net with a loss behind a last softmax, its arrays, and the
// class names of its metadata. A file for a batch of fixed size that cannot be made one for any is
// opened for that size. `arrays` define what it, or PREFIX@N, leaves open, and get the names that
// inputs have in the net. Also throws as onnx::ImportModel, and kData for arrays of other
// shapes than the inputs of an ONNX file.
OpenedModel OpenModel(const session::ComputeOptions& flags, const std::string& where,
                      const std::vector<std::string>& inputs, InputArrays* arrays,
                      const std::shared_ptr<Log>& log);

// Throws kUsage if the two are swapped: the data argument is a run or checkpoint, and the model
// argument is not.
void CheckOrder(const std::string& model, const std::string& data, const std::string& command);

// The images of folders (with the folders inside, sorted), files, lists (.txt, .lst, .tsv, .csv:
// the lines of list_line.h, labels optional; relative to the list) and "-" (an image on stdin, or
// such a list, relative to the working folder); a zero byte ends a path like a line end. A line
// that is the name of a file is used whole. A missing input is kept and reported with the
// unreadable images; throws kFileSystem if all are missing, and kData for a line that cannot be a
// path. Reports if there are no images (empty folders and lists); throws kData for a folder that
// contains only other files.
std::vector<std::string> CollectImages(const std::vector<std::string>& inputs, const Logger& log);

// Reads stdin to its end, into memory; from then on /dev/stdin is a file that can be read any
// number of times.
void KeepStdin();

// For a run on a table with one column of images: whether an input of CollectImages is a table, and
// not a list: its first record names that column (PipelineSpec::BeginsTable). Pipes and compressed
// files are tables. Stdin is read to its end, and can then be read again.
bool LooksLikeTable(const std::string& input, const session::PipelineSpec& spec);

// Of tiles that could not be read, their images, each once.
std::vector<std::pair<std::string, std::string>> OfImages(
    std::vector<std::pair<std::string, std::string>> bad);

// Reports the examples that could not be read. Returns the exit code: 0 if there are none, or with
// `skip`.
int ReportBad(const std::vector<std::pair<std::string, std::string>>& bad, int64_t tried, bool skip,
              const Logger& log);

}  // namespace mxtrain::inference
