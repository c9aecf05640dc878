#pragma once
// How far a classifier's probabilities can be believed: calibration, and what is gained by leaving out the predictions that are less sure.
// A mean over nothing is NaN, which tables show as "-", CSV as an empty cell and JSON as null.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mxtrain::commands {

// Of one example: the probability of the class that was predicted, and whether it is the true one.
struct Verdict {
  double confidence = 0;
  bool right = false;
};

// Verdicts whose confidence lies in (low, high]; the first bin holds 0 as well.
struct CalibrationBin {
  double low = 0, high = 0;
  double confidence = 0, accuracy = 0;  // means over its verdicts
  int64_t examples = 0;
};
constexpr int kCalibrationBins = 15;
std::vector<CalibrationBin> CalibrationBins(std::span<const Verdict> verdicts, int bins = kCalibrationBins);
// Expected calibration error: mean over verdicts of |accuracy - confidence| of their bin (Guo et al. 2017, "On Calibration of Modern
// Neural Networks", equation 3).
double ExpectedCalibrationError(std::span<const CalibrationBin> bins);

// What stands when only verdicts of at least this confidence are taken.
struct ConfidenceThreshold {
  double threshold = 0;
  double kept = 0;      // part of the verdicts
  double accuracy = 0;  // of those
};
std::vector<ConfidenceThreshold> ConfidenceThresholds(std::span<const Verdict> verdicts);

// Two classes: an example is called positive when its probability of the positive class is at least the threshold.
struct Scored {
  double probability = 0;  // of the positive class
  bool positive = false;   // what it is
};
struct DecisionThreshold {
  double threshold = 0;
  double precision = 0, recall = 0, f1 = 0;  // of the positive class; recall and F1 are 0 where they are undefined
};
std::vector<DecisionThreshold> DecisionThresholds(std::span<const Scored> examples);

std::string TableCell(double value);  // four digits after the point
std::string CsvCell(double value);

}  // namespace mxtrain::commands
