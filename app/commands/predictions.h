// SPDX-License-Identifier: Apache-2.0
#pragma once
// Outputs of `infer`: lists, copies of the images sorted into folders, annotated images, scores as
// numbers. Each is a sink that takes the predictions one by one, in the order of the images.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/answers.h"
#include "app/report/console.h"
#include "app/report/npy.h"

namespace mxtrain::commands {

// The output of one head for an example.
struct HeadPrediction {
  const float* scores = nullptr;  // of all classes, or all values; valid during the call
  bool finite = true;             // all of them
  // Class and score, best first: at least one; for kAnyClasses the predicted ones; for kValues all,
  // in order. Scores of classes that are not finite predict none.
  std::vector<std::pair<int64_t, float>> best;
};

// A model's prediction for one example, an image or a row of a table.
struct Prediction {
  int64_t index = 0;  // among the inputs
  std::string name;   // the image's file; the row's number, or its cell in the key column
  std::string file;   // the image; empty for rows that are more
  std::vector<HeadPrediction> heads;
};

class PredictionSink {
 public:
  virtual ~PredictionSink() = default;
  virtual void Take(const Prediction& prediction) = 0;  // throws kFileSystem
  virtual void Finish() {}  // throws kFileSystem if not everything was written
};

// One line per example: "table", "csv" or "jsonl", on stdout or into the file `path`. `names`: of
// all examples, for the width of the table; `what`: what they are ("file", "row", a column). CSV
// header: `what`, predicted, score, and for further classes, up to `top_k`, predicted_2, score_2,
// ...; for kAnyClasses predicted, score, with semicolons; for kValues predicted_NAME. With several
// heads, each name has the prefix HEAD_. Where scores are not finite there is no class, and the
// score is nan; in JSON, null.
std::unique_ptr<PredictionSink> NewListing(const std::string& path, const std::string& format,
                                           const std::vector<AnswerHead>& heads,
                                           const std::string& what,
                                           const std::vector<std::string>& names, int top_k);

// Copies the images into FOLDER/CLASS/, by one of the heads, under their own names; those whose
// best score is below `least_score` into FOLDER/unsure/. For kAnyClasses, into the folder of each
// predicted class, or FOLDER/unsure/ without any, as of scores that are not finite. Nothing is
// overwritten: if another file has the name, the copy becomes NAME-2; a file with the same bytes is
// kept. At the end reports how many images were copied, and warns about copies of an earlier run in
// other folders. Throws kUsage if FOLDER/unsure/ is needed and a class has that name.
std::unique_ptr<PredictionSink> NewSorter(const std::string& folder,
                                          const std::vector<AnswerHead>& heads, size_t head,
                                          double least_score, report::Console& console);

// Writes the images with the classes and scores of all heads drawn on them into FOLDER, as JPEG if
// they were JPEG, else PNG; named as by NewSorter.
std::unique_ptr<PredictionSink> NewAnnotator(const std::string& folder,
                                             const std::vector<AnswerHead>& heads);

// Writes the scores of all classes, or all values, as .npy, one row for each of `rows` examples;
// NaN for unreadable ones. With several heads each into a file of its own, NAME-HEAD.npy, which are
// reported.
std::unique_ptr<PredictionSink> NewScoreFiles(const std::string& path,
                                              const std::vector<AnswerHead>& heads, int64_t rows,
                                              report::Console& console);

}  // namespace mxtrain::commands
