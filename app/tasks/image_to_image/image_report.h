// SPDX-License-Identifier: Apache-2.0
#pragma once
// Evaluation of predicted images: errors per pixel, and the examples that are furthest off.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/tasks/report.h"

namespace mxtrain::tasks {

class ImageReport final : public Report {
 public:
  explicit ImageReport(Head head) : Report(std::move(head)) {}

  // Lines: [head,] file, mse, mae, psnr.
  void WriteEach(const LineOutput& lines) override;
  bool SharesLines() const override { return true; }
  void KeepImages(int count, const report::ImageReader& reader) override {
    most_ = static_cast<size_t>(count), reader_ = &reader;
  }
  // Ignored if it has no label of the head's shape. Examples whose numbers are not finite are not
  // counted.
  void Add(const Examples& examples, const std::vector<NDArray>& outputs) override;
  bool empty() const override { return examples_ == 0; }
  std::string Text(int worst, bool several) const override;
  std::string CsvHeader() const override { return "images,mse,mae,psnr"; }
  std::string CsvLines(bool with_head) const override;
  // "images", or "images" by head: mse, mae, psnr, and the worst examples.
  void AddTo(Json* result, int worst, bool several) const override;
  // worst.png: what the net read, the label and the prediction of the worst examples.
  void WriteFiles(const std::string& folder) const override;

 private:
  struct Measured {
    std::string name;
    double mse = 0, mae = 0;
    io::Image shown;  // input, label and prediction side by side
  };

  void WriteLine(const Measured& example, bool finite) const;
  Json ToJson(int worst) const;

  LineOutput lines_;
  int64_t examples_ = 0;
  double mse_ = 0, mae_ = 0;  // sums over the examples
  size_t most_ = 0;           // of worst_
  const report::ImageReader* reader_ = nullptr;
  std::multimap<double, Measured, std::greater<>> worst_;  // by mse
};

// The peak signal-to-noise ratio in decibels of an error over values of 0 to 1:
// -10 log10(mse); infinite for equal images.
double PeakSignalToNoise(double mse);

}  // namespace mxtrain::tasks
