// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predictions as `infer` writes them: a Predictor, made once for a head, makes a HeadPrediction of
// the head's numbers for each example, which the outputs of `infer` (inference/prediction_sinks.h)
// ask for text, cells, JSON, a folder, an image.
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/tasks/example.h"
#include "mxtrain/base/json.h"
#include "mxtrain/io/image.h"
#include "mxtrain/metric/box_scores.h"

namespace mxtrain::tasks {

// Whether no value is NaN or infinite.
bool IsFinite(std::span<const float> values);
// For printing: NaN without a sign.
double UnsignedNan(double value);
// "nan" for any NaN.
std::string TextOf(float value);

// What a user may choose about predictions.
struct PredictionOptions {
  int top_k = 1;                    // classes that are listed, of one class of several
  std::optional<double> threshold;  // the least score of what is predicted, where any number may be
  // Without it, by the name of the head, those of its classes.
  std::map<std::string, std::vector<double>> thresholds = {};
};

// Objects with places in an image, in pixels of its file.
struct BoxesInImage {
  int height = 0, width = 0;    // of the file
  std::vector<FoundBox> boxes;  // the best first
};

// Of one head for one example. Valid as long as the numbers that it was made of.
class HeadPrediction {
 public:
  virtual ~HeadPrediction() = default;
  // As numbers, for --probabilities: Predictor::width() of them.
  virtual std::span<const float> numbers() const = 0;
  // As a line of a table: "cat 0.9312  dog 0.0421"; "-" for nothing.
  virtual std::string Text() const = 0;
  // As CSV, one for each of Predictor::Columns(); not yet quoted.
  virtual std::vector<std::string> Cells() const = 0;
  // The same for predictions of several lines: at least one.
  virtual std::vector<std::vector<std::string>> CellRows() const { return {Cells()}; }
  virtual Json ToJson() const = 0;  // an object
  // A line to write on the image; "" for nothing.
  virtual std::string Caption() const = 0;
  // Draws what has a place in the image, whose size is that of the file.
  virtual void DrawOn(io::Image* /*image*/) const {}
  // The classes whose folders the image is sorted into; empty if it is not sure enough of any.
  virtual std::vector<std::string> Folders(double /*least_score*/) const { return {}; }
  // The image that is predicted, as the bytes of a PNG file; "" if there is none.
  virtual std::string PredictedPng() const { return ""; }
  // The boxes that are predicted; null if the predictor has no BoxClasses.
  virtual const BoxesInImage* Boxes() const { return nullptr; }
};

// What is predicted for an image that the net reads in tiles (io/tiles.h). Not thread-safe.
class JoinedPrediction {
 public:
  virtual ~JoinedPrediction() = default;
  // Of the tile of the image that the example is; `values` as of Predictor::Predict.
  virtual void Add(std::span<const float> values, const Example& example) = 0;
  // After the last tile.
  virtual std::unique_ptr<HeadPrediction> Take() = 0;
};

// Immutable: calls may come from any thread.
class Predictor {
 public:
  virtual ~Predictor() = default;
  // Which options have a meaning for it, and which outputs it has.
  struct Abilities {
    bool top_k = false, threshold = false;
    bool sorts = false;   // Folders
    bool images = false;  // PredictedPng
    bool draws = true;    // is shown on the image that it is of (Caption, DrawOn)
    bool placed = false;  // its numbers say where things are, so that those of views differ
    bool tiles = false;   // Join
  };
  virtual Abilities abilities() const = 0;
  virtual int64_t width() const = 0;  // numbers of an example
  // Headers of CSV, without the name of the head.
  virtual std::vector<std::string> Columns() const = 0;
  // `values`: the head's numbers for the example, as the net gives them.
  virtual std::unique_ptr<HeadPrediction> Predict(std::span<const float> values,
                                                  const Example& example) const = 0;
  // Of an image, whose tiles are added to it; null unless it can.
  virtual std::unique_ptr<JoinedPrediction> Join() const { return nullptr; }
  // What is shown of an example whose numbers are not finite: "no class is predicted ...".
  virtual std::string HowNotFinite() const = 0;
  // Whether a class that images are sorted by has this name.
  virtual bool HasClass(const std::string& /*name*/) const { return false; }
  // The names of the classes of Boxes; null if it predicts something else.
  virtual const std::vector<std::string>* BoxClasses() const { return nullptr; }
  // Whether Folders may be empty for finite numbers.
  virtual bool MayBeUnsure(double /*least_score*/) const { return false; }
};

}  // namespace mxtrain::tasks
