// SPDX-License-Identifier: Apache-2.0
#pragma once
// Evaluation of a detector: average precision by class and by size, what is wrong with its boxes,
// and the images that are furthest off. Measured in pixels of the files, against their labels.
#include <map>
#include <string>
#include <vector>

#include "app/tasks/detection/box_errors.h"
#include "app/tasks/detection/joined_boxes.h"
#include "app/tasks/report.h"
#include "app/tasks/scored_classes.h"
#include "app/tasks/tile_count.h"

namespace mxtrain::tasks {

class BoxReport final : public Report {
 public:
  struct Row {
    std::string name;
    int64_t objects = 0;
    double ap = 0, ap50 = 0;                      // NaN for a class without objects
    double score = 0, precision = 0, recall = 0;  // where F1 is best, at an IoU of 0.5
  };

  BoxReport(Head head, std::vector<std::string> names)
      : Report(std::move(head)), given_(names), names_(std::move(names)) {}

  // Lines: [head,] file, objects, right, wrong, missed, at kShownScore.
  void WriteEach(const LineOutput& lines) override;
  bool SharesLines() const override { return true; }
  void KeepImages(int count, const report::ImageReader& reader) override {
    most_ = static_cast<size_t>(count), reader_ = &reader;
  }
  bool TakesTiles() const override { return true; }
  void Add(const Examples& examples, const std::vector<NDArray>& outputs) override;
  void Finish() override;
  bool empty() const override { return images_.empty(); }
  std::string Text(int worst, bool several) const override;
  std::string CsvHeader() const override { return "class,ap,ap50,objects,score,precision,recall"; }
  std::string CsvLines(bool with_head) const override;
  // "boxes", or "boxes" by head.
  void AddTo(Json* result, int worst, bool several) const override;
  // classes.csv; curves.csv and curves.png, precision over recall; confusion.csv, with the
  // background; worst.png: labels beside boxes.
  void WriteFiles(const std::string& folder) const override;

  const std::vector<Row>& rows() const { return rows_; }
  const BoxScores::Coco& coco() const { return coco_; }
  const BoxErrors& errors() const { return errors_; }  // at kShownScore

 private:
  struct Measured {
    std::string name;
    std::vector<TrueBox> truth;
    std::vector<FoundBox> found;  // the best first
  };
  struct Bad {
    std::string name;
    BoxErrors errors;
    io::Image shown;  // what the net read, with the labels, beside it with the boxes; of tiles none
  };

  void Keep(const Example& example, const BoxErrors& errors, std::span<const float> rows,
            std::span<const float> label, size_t columns);
  void WriteLine(const std::string& name, const BoxErrors& errors) const;
  Json ToJson(int worst) const;

  const std::vector<std::string> given_;  // names of classes
  const ClassNames names_;
  LineOutput lines_;
  std::vector<Measured> images_;
  TileCount tiles_;     // of the image that is read, if examples are tiles
  JoinedBoxes joined_;  // in them
  size_t most_ = 0;     // of worst_
  const report::ImageReader* reader_ = nullptr;
  std::multimap<double, Bad> worst_;  // by the F1 of the image

  // After Finish.
  std::vector<Row> rows_;                        // of each class
  std::vector<std::vector<CurvePoint>> curves_;  // likewise
  BoxScores::Coco coco_{};
  BoxErrors errors_;
  BoxConfusion confusion_;
};

}  // namespace mxtrain::tasks
