// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/classification/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

constexpr double kConfidences[] = {0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999};
constexpr double kDecisions[] = {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95};

double Ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

double Mean(double sum, double count) {
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::vector<CalibrationBin> CalibrationBins(std::span<const Verdict> verdicts, int count) {
  std::vector<CalibrationBin> bins(static_cast<size_t>(count));
  for (int b = 0; b < count; ++b) {
    bins[static_cast<size_t>(b)].low = static_cast<double>(b) / count;
    bins[static_cast<size_t>(b)].high = static_cast<double>(b + 1) / count;
  }
  for (const Verdict& v : verdicts) {
    const int at = static_cast<int>(std::ceil(v.confidence * count)) - 1;
    CalibrationBin& bin = bins[static_cast<size_t>(std::clamp(at, 0, count - 1))];
    ++bin.examples;
    bin.confidence += v.confidence;
    bin.accuracy += v.right ? 1 : 0;
  }
  for (CalibrationBin& bin : bins) {
    bin.confidence = Mean(bin.confidence, static_cast<double>(bin.examples));
    bin.accuracy = Mean(bin.accuracy, static_cast<double>(bin.examples));
  }
  return bins;
}

double ExpectedCalibrationError(std::span<const CalibrationBin> bins) {
  double gaps = 0, examples = 0;
  for (const CalibrationBin& bin : bins) {
    if (bin.examples == 0) continue;
    gaps += static_cast<double>(bin.examples) * std::abs(bin.accuracy - bin.confidence);
    examples += static_cast<double>(bin.examples);
  }
  return Ratio(gaps, examples);
}

std::string DescribeConfidence(std::span<const Verdict> verdicts) {
  constexpr double kSame = 0.01;
  double excess = 0;  // of confidence over accuracy
  for (const Verdict& v : verdicts) excess += v.confidence - (v.right ? 1 : 0);
  excess = Ratio(excess, static_cast<double>(verdicts.size()));
  if (std::abs(excess) < kSame) return "";
  return format(": scores are {:.4f} {} the accuracy, on average", std::abs(excess),
                excess > 0 ? "above" : "below");
}

std::vector<ConfidenceThreshold> ConfidenceThresholds(std::span<const Verdict> verdicts) {
  std::vector<ConfidenceThreshold> rows;
  for (const double threshold : kConfidences) {
    double kept = 0, right = 0;
    for (const Verdict& v : verdicts) {
      if (v.confidence < threshold) continue;
      ++kept;
      right += v.right ? 1 : 0;
    }
    rows.push_back(
        {threshold, Ratio(kept, static_cast<double>(verdicts.size())), Mean(right, kept)});
  }
  return rows;
}

std::vector<DecisionThreshold> DecisionThresholds(std::span<const Scored> examples) {
  std::vector<DecisionThreshold> rows;
  for (const double threshold : kDecisions) {
    double called = 0, positive = 0, hits = 0;
    for (const Scored& e : examples) {
      const bool call = e.probability >= threshold;
      called += call ? 1 : 0;
      positive += e.positive ? 1 : 0;
      hits += call && e.positive ? 1 : 0;
    }
    rows.push_back(
        {threshold, Mean(hits, called), Ratio(hits, positive), Ratio(2 * hits, called + positive)});
  }
  return rows;
}

std::string TableCell(double value) {
  return std::isnan(value) ? "-" : format("{:.4f}", value);
}

std::string CsvCell(double value) {
  return std::isnan(value) ? "" : format("{}", value);
}

}  // namespace mxtrain::tasks
