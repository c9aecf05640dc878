#pragma once
// What `infer` does with its predictions: lists them, sorts copies of the pictures into folders, draws them onto the pictures, writes the
// scores as numbers. Each is a sink that takes one prediction after another, in the order of the pictures.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/report/console.h"
#include "app/report/npy.h"

namespace mxtrain::commands {

// What the scores of a model are: those of one class among others; of any number of classes; values to be read as they are.
enum class Answer { kOneClass, kAnyClasses, kValues };

// What a model says of one picture.
struct Prediction {
  int64_t index = 0;                            // of the picture, among those that were named
  std::string file;
  const float* scores = nullptr;                // of all classes; lives as long as the call that it is handed to
  // Class and score, best first: at least one; of kAnyClasses those that are there; of kValues all, in their order.
  std::vector<std::pair<int64_t, float>> best;
};

class PredictionSink {
 public:
  virtual ~PredictionSink() = default;
  virtual void Take(const Prediction& prediction) = 0;  // throws kFileSystem
  virtual void Finish() {}                              // throws kFileSystem where not everything arrived
};

// Names of classes, or of values, by number; one without a name is called by its number.
class ClassNames {
 public:
  explicit ClassNames(std::vector<std::string> names) : names_(std::move(names)) {}
  std::string operator[](int64_t k) const;
  bool Contains(const std::string& name) const;

 private:
  std::vector<std::string> names_;
};

// A line per picture: "table", "csv" or "jsonl", on stdout or into the file `path`. `files` are all of them, for the width of the table; `count` is
// that of the classes, or values, in a line (of kAnyClasses: not read). The head of the CSV: file, predicted, score, and of further classes
// predicted_2, score_2, ...; of kAnyClasses predicted, score, with semicolons; of kValues predicted_NAME.
std::unique_ptr<PredictionSink> NewListing(const std::string& path, const std::string& format, Answer answer, const ClassNames& names,
                                           const std::vector<std::string>& files, int count);

// Copies of the pictures in FOLDER/CLASS/, under their own names; those whose best score is below `least_score` in FOLDER/unsure/. Of
// kAnyClasses in the folder of each class that is there, without any in FOLDER/unsure/. Nothing is overwritten: where another file has the
// name already, the copy becomes NAME-2; one of the same bytes is left as it is. At the end it says how many went where, and warns of pictures
// that a former run has put into another folder. Throws kUsage where pictures could be unsure and a class is called so.
std::unique_ptr<PredictionSink> NewSorter(const std::string& folder, Answer answer, const ClassNames& names, double least_score,
                                          report::Console& console);

// The pictures with their class and score drawn on, in FOLDER, as JPEG where they were JPEG, else as PNG; named as NewSorter names.
std::unique_ptr<PredictionSink> NewAnnotator(const std::string& folder, Answer answer, const ClassNames& names);

// The scores of all classes as .npy, a row for each of `rows` pictures; NaN for one that could not be read.
std::unique_ptr<PredictionSink> NewScoreFile(const std::string& path, int64_t rows, int64_t classes);

}  // namespace mxtrain::commands
