#pragma once
// The value of each loss of a net, for reports: loss operators output predictions, not losses. It is what training minimises, so that it may differ
// from the metric cross_entropy. SoftmaxOutput: cross entropy, with the smoothing of labels, the weights of classes and the focal factor that the
// operator has. Regression outputs:
// half the squared error (linear), binary cross entropy (logistic), absolute error (MAE), summed over the outputs of an example. Other heads
// (MakeLoss): their own mean over elements, times grad_scale left out. Each a mean over examples; the total is their sum.
#include <map>
#include <string>
#include <vector>

#include "mxtrain/ndarray/tblob.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain {

class MXTRAIN_API LossReport {
 public:
  // One head of the net that is a loss.
  struct Head {
    std::string name;    // of the node: "softmax"
    int output = 0;      // index of the head
    std::string label;   // name of its label input; "" when it has none
    enum class Kind { kSoftmax, kLinear, kLogistic, kAbsolute, kMean } kind = Kind::kMean;
    bool ignores = false;      // SoftmaxOutput: use_ignore
    double ignore_label = -1;
    bool class_axis_1 = false; // SoftmaxOutput: multi_output
    std::vector<double> class_weights;  // SoftmaxOutput; none: 1 each
    double focal_gamma = 0;             // SoftmaxOutput
    double smoothing = 0;               // SoftmaxOutput: smooth_alpha, where the operator heeds it
  };
  struct Sum {
    double loss = 0, weight = 0;
  };
  using Sums = std::vector<Sum>;  // of each head
  explicit LossReport(const Symbol& symbol);
  const std::vector<Head>& heads() const { return heads_; }

  // Adds the first `count` examples of one batch for head h; plain float32 arrays in host memory. `label` is null for heads without one.
  void Update(int h, const TBlob& output, const TBlob* label, int64_t count);
  void Reset();
  double Mean(int h) const;  // 0 when nothing was added
  double Total() const;
  const Sums& sums() const { return sums_; }
  double TotalSince(const Sums& before) const;  // of what was added since these were the sums; 0 for nothing
  std::string SaveState() const;
  void RestoreState(const std::string& text);

 private:
  std::vector<Head> heads_;
  Sums sums_;
};

// How the optimizer must scale gradients, which are summed over `parts` of the batch: 1 / parts where every loss normalises itself (over its part),
// else 1 / batch. `reason` says which, for the log.
MXTRAIN_API double RescaleGrad(const Symbol& symbol, int64_t batch_size, int parts, std::string* reason);

// What the one loss of a net wants of labels that are distributions: SoftmaxOutput over [N, classes], whose smoothing they must hold already.
// Throws kConfig for other losses, for several, and for what the operator does not do to distributions: ignored labels and normalization.
struct SoftLabelSpec {
  int classes = 0;
  double smoothing = 0;
};
MXTRAIN_API SoftLabelSpec FindSoftLabels(const Symbol& symbol, const std::map<std::string, TShape>& input_shapes);

}  // namespace mxtrain
