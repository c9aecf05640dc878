#pragma once
// How far a classifier's probabilities can be believed: calibration, and what is gained by leaving out the predictions that are less sure.
#include <cstdint>
#include <span>
#include <vector>

namespace mxtrain::commands {

// One example: the probability of the class that was predicted, and whether it is the true one.
struct Prediction {
  double confidence = 0;
  bool right = false;
};

// Predictions whose confidence lies in (low, high]; the first bin holds 0 as well.
struct CalibrationBin {
  double low = 0, high = 0;
  double confidence = 0, accuracy = 0;  // means over its predictions; 0 without any
  int64_t examples = 0;
};
constexpr int kCalibrationBins = 15;
std::vector<CalibrationBin> CalibrationBins(std::span<const Prediction> predictions, int bins = kCalibrationBins);
// Expected calibration error: mean over predictions of |accuracy - confidence| of their bin (Guo et al. 2017, "On Calibration of Modern
// Neural Networks", equation 3).
double ExpectedCalibrationError(std::span<const CalibrationBin> bins);

// What stands when only predictions of at least this confidence are taken.
struct ConfidenceThreshold {
  double threshold = 0;
  double kept = 0;      // part of the predictions
  double accuracy = 0;  // of those; 0 where none is kept
};
std::vector<ConfidenceThreshold> ConfidenceThresholds(std::span<const Prediction> predictions);

// Two classes: an example is called positive when its probability of the positive class is at least the threshold.
struct Scored {
  double probability = 0;  // of the positive class
  bool positive = false;   // what it is
};
struct DecisionThreshold {
  double threshold = 0;
  double precision = 0, recall = 0, f1 = 0;  // of the positive class; 0 where undefined
};
std::vector<DecisionThreshold> DecisionThresholds(std::span<const Scored> examples);

}  // namespace mxtrain::commands
