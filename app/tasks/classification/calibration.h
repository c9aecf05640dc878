// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calibration of a classifier's probabilities, and accuracy after rejecting less confident
// predictions. A mean over nothing is NaN, which tables show as "-", CSV as an empty cell and JSON
// as null.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mxtrain::tasks {

// For one example: the probability of the predicted class, and whether it is the true one.
struct Verdict {
  double confidence = 0;
  bool right = false;
};

// Verdicts with confidence in (low, high]; the first bin includes 0.
struct CalibrationBin {
  double low = 0, high = 0;
  double confidence = 0, accuracy = 0;  // means over its verdicts
  int64_t examples = 0;
};
constexpr int kCalibrationBins = 15;
std::vector<CalibrationBin> CalibrationBins(std::span<const Verdict> verdicts,
                                            int bins = kCalibrationBins);
// Expected calibration error: mean over verdicts of |accuracy - confidence| of their bin (Guo et
// al. 2017, "On Calibration of Modern Neural Networks", equation 3).
double ExpectedCalibrationError(std::span<const CalibrationBin> bins);

// The mean of that error where scores are right, so that only chance parts accuracy from
// confidence: of small bins it is not small.
double ChanceCalibrationError(std::span<const CalibrationBin> bins);

// ": scores are 0.3677 below the accuracy, on average": what the error is of, if all bins agree on
// it and it is more than chance; "" below a hundredth.
std::string DescribeConfidence(std::span<const Verdict> verdicts);

// In which the accuracy lies with a probability of 95 %: Wilson's interval (Wilson 1927, "Probable
// Inference, the Law of Succession, and Statistical Inference").
struct Interval95 {
  double low = 0, high = 1;
};
Interval95 WilsonInterval(int64_t right, int64_t examples);

// The logarithms of probabilities, a row for each example, and the true classes.
struct ScoresOfClasses {
  size_t classes = 0;
  std::vector<float> logarithms;
  std::vector<size_t> truths;
};
// By which logits have to be divided for the least cross-entropy, between 1/20 and 20: temperature
// scaling (Guo et al. 2017, section 4.2). Logarithms of probabilities serve as logits.
double FitTemperature(const ScoresOfClasses& scores);

// The result with only the verdicts of at least this confidence.
struct ConfidenceThreshold {
  double threshold = 0;
  double kept = 0;      // fraction of the verdicts
  double accuracy = 0;  // of those
};
std::vector<ConfidenceThreshold> ConfidenceThresholds(std::span<const Verdict> verdicts);

// Two classes: an example is predicted positive if its probability of the positive class is at
// least the threshold.
struct Scored {
  double probability = 0;  // of the positive class
  bool positive = false;   // the true class
};
struct DecisionThreshold {
  double threshold = 0;
  // Of the positive class; recall and F1 are 0 if undefined.
  double precision = 0, recall = 0, f1 = 0;
};
std::vector<DecisionThreshold> DecisionThresholds(std::span<const Scored> examples);

std::string TableCell(double value);  // four digits after the point
std::string CsvCell(double value);

}  // namespace mxtrain::tasks
