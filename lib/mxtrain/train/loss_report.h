// SPDX-License-Identifier: Apache-2.0
#pragma once
// The value of each loss of a net, for reports: loss operators output predictions, not losses. It
// is what training minimizes, so it may differ from the metric cross_entropy. SoftmaxOutput: cross
// entropy with the operator's label smoothing, class weights and focal factor. Regression outputs:
// half the squared error (linear), binary cross entropy (logistic), absolute error (MAE), summed
// over the outputs of an example. linear_cross_entropy: the mean of its rows that are not ignored.
// Other heads (MakeLoss): mean over elements. Each is a mean over
// examples (of a label reshaped to more rows than examples: over rows), without grad_scale; the
// total is their sum, each times its grad_scale. Of examples with weights it is the weighted mean,
// sum(w l) / sum(w). A loss whose label the net computes
// (MultiBoxTarget) has no value here: end such a net with MakeLoss of the value to see it. Several
// losses may read a label; a variable that a prediction depends on, or that a gradient reaches, is
// none (operators say of an argument that it has no gradient: OperatorProperty::HasGradient).
#include <map>
#include <set>
#include <string>
#include <vector>

#include "mxtrain/ndarray/tblob.h"
#include "mxtrain/symbol/graph.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain {

class MXTRAIN_API LossReport {
 public:
  // A head of the net that is a loss.
  struct Head {
    std::string name;   // of the node: "softmax"
    int output = 0;     // index of the head
    std::string label;  // name of its label, perhaps reshaped; "" if none
    // kRows: outputs the loss of each row (linear_cross_entropy). kUnknown: outputs predictions,
    // with a label that the net computes.
    enum class Kind { kSoftmax, kLinear, kLogistic, kAbsolute, kRows, kMean, kUnknown };
    Kind kind = Kind::kMean;
    double scale = 1;      // grad_scale
    bool ignores = false;  // SoftmaxOutput, linear_cross_entropy: use_ignore
    double ignore_label = -1;
    bool class_axis_1 = false;          // SoftmaxOutput: multi_output
    std::vector<double> class_weights;  // SoftmaxOutput; none: 1 each
    double focal_gamma = 0;             // SoftmaxOutput
    double smoothing = 0;               // SoftmaxOutput: smooth_alpha, if the operator applies it
  };
  struct Sum {
    double loss = 0, weight = 0;
  };
  using Sums = std::vector<Sum>;  // of each head
  explicit LossReport(const Symbol& symbol);
  const std::vector<Head>& heads() const { return heads_; }

  // Adds the first `count` examples of a batch for head h; plain float32 arrays in host memory.
  // `label`: null for heads without one. `weights` [batch]: of the examples, from 0; null: 1 each.
  // An example of weight 0 does not count, whatever its loss.
  void Update(int h, const TBlob& output, const TBlob* label, int64_t count,
              const TBlob* weights = nullptr);
  void Reset();
  bool has_values() const;   // whether a head is of a known kind
  double Mean(int h) const;  // NaN if nothing was added
  double Total() const;      // of the heads that something was added for; NaN if that is none
  const Sums& sums() const { return sums_; }
  double TotalSince(const Sums& before) const;  // of what was added since `before`
  // Whether what was added for head h has a NaN or infinite loss.
  bool Diverges(int h) const;
  std::string SaveState() const;
  void RestoreState(const std::string& text);  // throws kData
  // Adds what another report of this net was given, from its saved state. Throws kData.
  void Merge(const std::string& state);

 private:
  Sums ParseState(const std::string& text) const;
  std::vector<Head> heads_;
  Sums sums_;
};

// Whether the node is an operator that computes its gradients itself, unless it has none.
MXTRAIN_API bool IsLoss(const Node& node);
// Whether the node's values are those of its input 0, in its order, perhaps in another shape.
MXTRAIN_API bool KeepsValues(const Node& node);
// Whether input 1 of the node is a label that it reads only for gradients, as SoftmaxOutput and the
// regression outputs do.
MXTRAIN_API bool HasLabel(const Node& node);
// The variables that the values of the outputs depend on: not those from which only such labels are
// computed.
MXTRAIN_API std::set<std::string> VariablesRead(const Symbol& symbol);

// The labels of outputs that are no losses, by output: an output that depends on an operator with
// the same inputs as a loss, or as what MakeLoss makes one, but for its label, predicts that
// (PointBoxes beside PointBoxLoss, ctc_greedy_decoder beside CTCLoss). The label of a loss is its
// first argument without a gradient.
MXTRAIN_API std::map<int, std::string> LabelsBesideLosses(const Symbol& symbol);

// The variables that a gradient from a loss of the net reaches, past no operator that has none.
MXTRAIN_API std::set<std::string> VariablesTrained(const Symbol& symbol);

// The optimizer's factor on gradients, which are summed over `parts` of the batch: 1 / parts if
// every loss normalizes itself (over its part), else 1 / batch. `reason` says which, for the log.
MXTRAIN_API double RescaleGrad(const Symbol& symbol, int64_t batch_size, int parts,
                               std::string* reason);

// Requirements of a net's only loss on labels that are distributions: SoftmaxOutput over [N,
// classes], with its smoothing already applied to the labels. Throws kConfig for other losses, for
// several, and for options not supported with distributions: ignored labels and normalization.
struct SoftLabelSpec {
  int classes = 0;
  double smoothing = 0;
};
MXTRAIN_API SoftLabelSpec FindSoftLabels(const Symbol& symbol,
                                         const std::map<std::string, TShape>& input_shapes);

}  // namespace mxtrain
