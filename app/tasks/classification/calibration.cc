// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/classification/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

constexpr double kConfidences[] = {0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999};
constexpr double kLeastInverse = 0.05, kMostInverse = 20;  // of temperatures
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

double ChanceCalibrationError(std::span<const CalibrationBin> bins) {
  double gaps = 0, examples = 0;
  for (const CalibrationBin& bin : bins) {
    if (bin.examples == 0) continue;
    const auto count = static_cast<double>(bin.examples);
    // The mean distance of a normal distribution from its mean is sqrt(2 / pi) deviations.
    gaps += count * std::sqrt(2 / std::numbers::pi * bin.confidence * (1 - bin.confidence) / count);
    examples += count;
  }
  return Ratio(gaps, examples);
}

std::string DescribeConfidence(std::span<const Verdict> verdicts) {
  constexpr double kSame = 0.01, kChance = 1.5, kOneSided = 0.8;
  const std::vector<CalibrationBin> bins = CalibrationBins(verdicts);
  const double error = ExpectedCalibrationError(bins), chance = ChanceCalibrationError(bins);
  if (error < kSame) return "";
  if (error <= kChance * chance) {
    return format(": about what chance makes of {} examples whose scores are right ({:.4f})",
                  verdicts.size(), chance);
  }
  double excess = 0;  // of confidence over accuracy
  for (const Verdict& v : verdicts) excess += v.confidence - (v.right ? 1 : 0);
  excess = Ratio(excess, static_cast<double>(verdicts.size()));
  if (std::abs(excess) < kOneSided * error)
    return ": some scores are above the accuracy, others below it; see the reliability diagram";
  return format(": scores are {:.4f} {} the accuracy, on average", std::abs(excess),
                excess > 0 ? "above" : "below");
}

Interval95 WilsonInterval(int64_t right, int64_t examples) {
  if (examples == 0) return {0, 1};
  constexpr double z = 1.959964;
  const auto n = static_cast<double>(examples);
  const double p = static_cast<double>(right) / n, middle = p + z * z / (2 * n),
               half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n)), whole = 1 + z * z / n;
  return {std::max(0.0, (middle - half) / whole), std::min(1.0, (middle + half) / whole)};
}

double FitTemperature(const ScoresOfClasses& scores) {
  // Cross-entropy of softmax(log(p) / temperature), whose second derivative by 1 / temperature is
  // nowhere negative.
  const auto loss = [&scores](double inverse) {
    double sum = 0;
    for (size_t i = 0; i < scores.truths.size(); ++i) {
      const float* row = scores.logarithms.data() + i * scores.classes;
      const auto most = static_cast<double>(*std::max_element(row, row + scores.classes)) * inverse;
      double total = 0;
      for (size_t k = 0; k < scores.classes; ++k)
        total += std::exp(static_cast<double>(row[k]) * inverse - most);
      sum += most + std::log(total) - static_cast<double>(row[scores.truths[i]]) * inverse;
    }
    return sum;
  };
  // Golden-section search over the logarithm of 1 / temperature.
  double low = std::log(kLeastInverse), high = std::log(kMostInverse);
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double a = high - golden * (high - low), b = low + golden * (high - low);
  double at_a = loss(std::exp(a)), at_b = loss(std::exp(b));
  constexpr int kSteps = 40;
  for (int step = 0; step < kSteps; ++step) {
    if (at_a <= at_b) {
      high = b, b = a, at_b = at_a;
      a = high - golden * (high - low), at_a = loss(std::exp(a));
    } else {
      low = a, a = b, at_a = at_b;
      b = low + golden * (high - low), at_b = loss(std::exp(b));
    }
  }
  return std::exp(-(low + high) / 2);
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
