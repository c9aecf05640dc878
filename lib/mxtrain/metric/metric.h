// SPDX-License-Identifier: Apache-2.0
#pragma once
// Metrics of a net's predictions over the examples of an epoch, mostly means. Where MXNet averages
// per batch (mse, mae), this library averages over examples, so a short last batch does not weigh
// more.
//
// Not thread-safe; used on one thread at a time.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/params.h"
#include "mxtrain/ndarray/tblob.h"

namespace mxtrain {

class MXTRAIN_API Metric {
 public:
  // accuracy; top_k (k); cross_entropy (eps 1e-12); perplexity, its exponential; f1 (average: macro
  // or binary); mean_iou, of a class for each pixel; mean_ap (iou), of boxes; cer, wer, of texts;
  // multilabel_accuracy and multilabel_f1
  // (average: macro or micro), for labels with a 0 or 1 per class; auc; mse; rmse; mae; psnr, of
  // values of at most 1; r2; also under MXNet's names (acc, ce, ...). The class metrics take
  // ignore_label: examples with it do not count. Throws kConfig with the nearest name or parameter.
  static std::unique_ptr<Metric> Create(std::string_view name, const Kwargs& params = {});
  static std::vector<std::string> Names();
  static std::vector<FieldInfo> Describe(std::string_view name);
  virtual ~Metric() = default;

  const std::string& name() const { return name_; }  // "accuracy", "top_5_accuracy"
  virtual bool higher_is_better() const = 0;
  // It keeps every example, so that it is measured on validation data alone, if there are any.
  virtual bool for_evaluation() const { return false; }

  // Adds the first `count` examples of a batch; plain float32 in host memory. `pred` [N, ...]:
  // class scores on axis 1 for the class metrics, values for the others. `label` [N, ...]: class
  // indices (or scores of pred's shape, whose arg-max is used), values for the others. Throws
  // kConfig if the shapes do not match, kData for a label that is not a class.
  // `weights` [examples]: with which each example counts, from 0 (io/example_weight.h); null: 1
  // each. `pred` has as many rows for each. Throws kConfig unless takes_weights.
  void Update(const TBlob& label, const TBlob& pred, int64_t count, const TBlob* weights = nullptr);
  // Whether examples may have weights: an example of weight 3 counts as three of them, one of
  // weight 0 as none.
  virtual bool takes_weights() const { return false; }
  // Whether the metric follows from -ln of the probability of each label, and the same from these:
  // `losses` has the shape of `label`.
  virtual bool takes_losses() const { return false; }
  void UpdateFromLosses(const TBlob& label, const TBlob& losses, int64_t count,
                        const TBlob* weights = nullptr);
  virtual void Reset() = 0;
  // NaN before anything was added, and if what was added does not define it (the auc of one class).
  virtual double value() const = 0;

  // Exact: a restored metric continues with the same bits.
  std::string SaveState() const;
  void RestoreState(const std::string& text);  // throws kData
  // Adds the examples of another instance of this metric, with the same parameters, from its saved
  // state: as if they had been added here. Counts are exact to the last bit, other sums but for
  // rounding. Throws kData, and then changes nothing.
  void Merge(const std::string& state);

 protected:
  explicit Metric(std::string name) : name_(std::move(name)) {}
  // The arrays are plain float32 with one batch size, at least `count`.
  virtual void Add(const TBlob& label, const TBlob& pred, int64_t count) = 0;
  virtual void AddLosses(const TBlob& label, const TBlob& losses, int64_t count);
  // Of a row of the batch that is being added.
  double WeightOf(int64_t row) const {
    return weights_ ? double{weights_[row / rows_of_weight_]} : 1;
  }
  // The accumulated state, its restoration, and the addition of another one; false for numbers that
  // are not a state of this metric.
  virtual std::vector<double> Sums() const = 0;
  virtual bool SetSums(const std::vector<double>& sums) = 0;
  virtual bool AddSums(const std::vector<double>& sums) = 0;

 private:
  void CheckArrays(const TBlob& label, const TBlob& pred, int64_t count) const;
  void TakeWeights(const TBlob* weights, int64_t rows);
  void TakeState(const std::string& text, bool (Metric::*take)(const std::vector<double>& sums));
  std::string name_;
  const float* weights_ = nullptr;  // of the batch that is being added
  int64_t rows_of_weight_ = 1;
};

}  // namespace mxtrain
