// SPDX-License-Identifier: Apache-2.0
#pragma once
// Evaluation of predicted classes of pixels, at the size at which the net reads images: overlap of
// each class over the data set, and the images that are furthest off.
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "app/tasks/report.h"
#include "app/tasks/scored_classes.h"
#include "app/tasks/tile_count.h"

namespace mxtrain::tasks {

class MaskReport final : public Report {
 public:
  // Of a class; with `right` pixels of those `labelled` and those `guessed` (tp + fn, tp + fp).
  // NaN where it neither is labelled nor predicted.
  struct Row {
    std::string name;
    int64_t right = 0, labelled = 0, guessed = 0;
    double boundary_f = std::numeric_limits<double>::quiet_NaN();  // mean of images with its edges
    double Iou() const;
    double Dice() const;
    double Precision() const;
    double Recall() const;
  };

  MaskReport(Head head, std::vector<std::string> names)
      : Report(std::move(head)), names_(std::move(names)) {}

  // Lines: [head,] file, mean_iou (over the classes of the image), pixel_accuracy.
  void WriteEach(const LineOutput& lines) override;
  bool SharesLines() const override { return true; }
  void KeepImages(int count, const report::ImageReader& reader) override {
    most_ = static_cast<size_t>(count), reader_ = &reader;
  }
  // Ignored if it has no label of the head's size. Pixels with labels that are no class do not
  // count, nor images without others, and those whose scores are not finite.
  // Of tiles, pixels count that are nearest to the center of theirs.
  bool TakesTiles() const override { return true; }
  void Add(const Examples& examples, const std::vector<NDArray>& outputs) override;
  bool empty() const override { return images_ == 0; }
  std::string Text(int worst, bool several) const override;
  std::string CsvHeader() const override {
    return "class,iou,dice,boundary_f,precision,recall,pixels";
  }
  std::string CsvLines(bool with_head) const override;
  // "masks", or "masks" by head.
  void AddTo(Json* result, int worst, bool several) const override;
  // classes.csv; confusion.csv, pixels by true class (rows) and predicted one; worst.png: what the
  // net read, with the label and with the prediction painted on it.
  void WriteFiles(const std::string& folder) const override;

  std::vector<Row> Rows() const;
  double MeanIou() const;          // over the classes, of the pixels of all images
  double MeanIouOfImages() const;  // over the images
  double PixelAccuracy() const;
  // Mean over the images of the mean of their classes (metric/boundary_f.h), of images that are
  // read whole; NaN if none has an edge between classes.
  double BoundaryF() const;

 private:
  struct Measured {
    std::string name;
    double mean_iou = 0, accuracy = 0;
    io::Image shown;
  };
  using Counts = std::vector<std::vector<int64_t>>;  // [true class][predicted class]
  // A mean that is not complete.
  struct Mean {
    double sum = 0;
    int64_t count = 0;
    void Add(double value) {
      if (!std::isnan(value)) sum += value, ++count;
    }
    double value() const { return sum / static_cast<double>(count); }  // NaN of nothing
  };

  static void AddTo(const Counts& from, Counts* to);
  static std::vector<Row> RowsOf(const Counts& counts);
  static double MeanIouOf(const std::vector<Row>& rows);
  static double AccuracyOf(const Counts& counts);
  // Of one example, of which `guesses` are the best classes.
  static Counts CountsOf(const Example& example, std::span<const float> truth,
                         std::span<const int32_t> guesses, const TShape& shape);
  // Adds the counts of a tile. After the last tile of an image they become those of the image, and
  // *finite whether all of its scores are finite; before, returns false.
  bool AddTile(const io::Tile& tile, Counts* counts, bool* finite);
  void AddBoundaries(std::span<const float> truth, std::span<const int32_t> guesses,
                     const TShape& shape);
  void WriteLine(const Measured& image, bool finite) const;
  Json ToJson(int worst) const;

  ClassNames names_;
  LineOutput lines_;
  Counts counts_;
  TileCount tiles_;     // of the image that is read, if examples are tiles
  Counts tile_counts_;  // in them
  bool finite_ = true;  // are their scores
  int64_t images_ = 0;
  double image_ious_ = 0;         // sum over the images
  std::vector<Mean> boundaries_;  // of each class
  Mean image_boundaries_;
  size_t most_ = 0;  // of worst_
  const report::ImageReader* reader_ = nullptr;
  std::multimap<double, Measured> worst_;  // by mean_iou
};

// Of one example, for PaintClasses: `label`: [H, W], class numbers; what is none is kNoClass.
io::Image ClassImage(std::span<const float> label, int64_t height, int64_t width);

}  // namespace mxtrain::tasks
