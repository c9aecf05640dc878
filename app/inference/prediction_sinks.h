// SPDX-License-Identifier: Apache-2.0
#pragma once
// Outputs of `infer`: lists, copies of the images sorted into folders, annotated and predicted
// images, scores as numbers. Each is a sink that takes the predictions one by one, in the order of
// the examples.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/report/npy.h"
#include "app/session/pipeline_spec.h"
#include "app/tasks/prediction.h"
#include "mxtrain/base/log.h"
#include "mxtrain/train/model.h"

namespace mxtrain::inference {

// An output of a net that is a prediction.
struct PredictedHead {
  std::string name;  // "softmax"
  int output = 0;    // its index
  std::shared_ptr<const tasks::Predictor> predictor;
};

// The outputs that are predictions, in the order of the net. The value of a loss, or numbers in a
// form that its task cannot write, is not one; skipping such numbers is reported. `batch`: a size
// that the net can be for. Throws kUsage, with a suggestion, if there is no prediction.
std::vector<PredictedHead> PredictedHeadsOf(const Model& model, const session::PipelineSpec& run,
                                            int64_t batch, const tasks::PredictionOptions& options,
                                            const Logger& log);

// A model's prediction for one example, an image or a row of a table.
struct Prediction {
  int64_t index = 0;  // among the inputs
  std::string name;   // the image's file; the row's number, or its cell in the key column
  std::string file;   // the image; empty for rows that are more
  std::vector<std::unique_ptr<tasks::HeadPrediction>> heads;
  // Of each head that predicts images, the file that holds it: set by NewPredictedImages, whose
  // sink comes before those that show it.
  std::vector<std::string> images = {};
};

class PredictionSink {
 public:
  virtual ~PredictionSink() = default;
  virtual void Take(Prediction& prediction) = 0;  // throws kFileSystem
  virtual void Finish() {}  // throws kFileSystem if not everything was written
};

// A line per example, of CSV as many as its prediction has (CellRows): "table", "csv" or "jsonl",
// on stdout or into the file `path`. `names`: of all examples, for the width of the table; `what`:
// what they are ("file", "row", a column). The columns of CSV are those of the predictors, and
// `image`, a file, for each that predicts images if they are written (`with_images`); with several
// heads, each name has the prefix HEAD_.
std::unique_ptr<PredictionSink> NewListing(const std::string& path, const std::string& format,
                                           const std::vector<PredictedHead>& heads,
                                           const std::string& what,
                                           const std::vector<std::string>& names, bool with_images);

// Copies the images into FOLDER/CLASS/ for each class that one of the heads predicts with at least
// this score, under their own names; those of none into FOLDER/unsure/. Nothing is overwritten: if
// another file has the name, the copy becomes NAME-2; a file with the same bytes is kept. At the
// end reports how many images were copied, and warns about copies of an earlier run in other
// folders. Throws kUsage if FOLDER/unsure/ may be needed and a class has that name.
std::unique_ptr<PredictionSink> NewSorter(const std::string& folder,
                                          const std::vector<PredictedHead>& heads, size_t head,
                                          double least_score, const Logger& log);

// Writes the images with the predictions of all heads drawn on them into FOLDER, as JPEG if they
// were JPEG, else PNG; named as by NewSorter.
std::unique_ptr<PredictionSink> NewAnnotator(const std::string& folder);

// Writes predicted images as PNG into FOLDER, at the paths of the files that they are of as these
// were given, or under the names of rows; with several such heads NAME-HEAD.png. Nothing is
// overwritten: another image of that name becomes NAME-2.png. Reports how many.
std::unique_ptr<PredictionSink> NewPredictedImages(const std::string& folder,
                                                   const std::vector<PredictedHead>& heads,
                                                   const Logger& log);

// Where the scores of each head go: into `path`, of several into NAME-HEAD.npy each.
std::vector<std::string> ScoreFilesOf(const std::string& path,
                                      const std::vector<PredictedHead>& heads);

// Writes the scores of all classes, or all values, as .npy, one row for each of `rows` examples;
// NaN for unreadable ones. With several heads each into a file of its own, which are reported.
std::unique_ptr<PredictionSink> NewScoreFiles(const std::string& path,
                                              const std::vector<PredictedHead>& heads, int64_t rows,
                                              const Logger& log);

}  // namespace mxtrain::inference
