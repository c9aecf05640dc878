#pragma once
// What `infer` does with its predictions: lists them, sorts copies of the pictures into folders, draws them onto the pictures, writes the
// scores as numbers. Each is a sink that takes one prediction after another, in the order of the pictures.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/answers.h"
#include "app/report/console.h"
#include "app/report/npy.h"

namespace mxtrain::commands {

// What one head says of an example.
struct HeadPrediction {
  const float* scores = nullptr;                // of all classes, or all values; lives as long as the call that it is handed to
  // Class and score, best first: at least one; of kAnyClasses those that are there; of kValues all, in their order.
  std::vector<std::pair<int64_t, float>> best;
};

// What a model says of one example, an image or a row of a table.
struct Prediction {
  int64_t index = 0;  // among those that were named
  std::string name;   // the image's file; the row's number, or its cell in the key column
  std::vector<HeadPrediction> heads;
};

class PredictionSink {
 public:
  virtual ~PredictionSink() = default;
  virtual void Take(const Prediction& prediction) = 0;  // throws kFileSystem
  virtual void Finish() {}                              // throws kFileSystem where not everything arrived
};

// A line per example: "table", "csv" or "jsonl", on stdout or into the file `path`. `names` are all of them, for the width of the table, and `what` they
// are ("file", "row", a column). The head of the CSV: `what`, predicted, score, and of further classes, up to `top_k`, predicted_2, score_2, ...; of
// kAnyClasses predicted, score, with semicolons; of kValues predicted_NAME. Several heads: each of these begins with HEAD_.
std::unique_ptr<PredictionSink> NewListing(const std::string& path, const std::string& format, const std::vector<AnswerHead>& heads, const std::string& what,
                                           const std::vector<std::string>& names, int top_k);

// Copies of the pictures in FOLDER/CLASS/, by one of the heads, under their own names; those whose best score is below `least_score` in FOLDER/unsure/. Of
// kAnyClasses in the folder of each class that is there, without any in FOLDER/unsure/. Nothing is overwritten: where another file has the
// name already, the copy becomes NAME-2; one of the same bytes is left as it is. At the end it says how many went where, and warns of pictures
// that a former run has put into another folder. Throws kUsage where pictures could be unsure and a class is called so.
std::unique_ptr<PredictionSink> NewSorter(const std::string& folder, const std::vector<AnswerHead>& heads, size_t head, double least_score,
                                          report::Console& console);

// The pictures with the classes and scores of all heads drawn on, in FOLDER, as JPEG where they were JPEG, else as PNG; named as NewSorter names.
std::unique_ptr<PredictionSink> NewAnnotator(const std::string& folder, const std::vector<AnswerHead>& heads);

// The scores of all classes of a head as .npy, a row for each of `rows` examples; NaN for one that could not be read.
std::unique_ptr<PredictionSink> NewScoreFile(const std::string& path, const std::vector<AnswerHead>& heads, size_t head, int64_t rows);

}  // namespace mxtrain::commands
