// SPDX-License-Identifier: Apache-2.0
// Metrics for examples with any number of classes: a score and a 0 or 1 label per class.
#include "mxtrain/base/error.h"
#include "mxtrain/metric/internal/metrics.h"

namespace mxtrain {
namespace {

struct MultilabelAccuracyParam : Parameter<MultilabelAccuracyParam> {
  double threshold;
  static void Declare(Fields<MultilabelAccuracyParam>& f) {
    f.Add("threshold", &MultilabelAccuracyParam::threshold)
        .Default(0.5)
        .Help("least score that predicts the class");
  }
};

struct MultilabelF1Param : Parameter<MultilabelF1Param> {
  enum Average { kMacro, kMicro };
  double threshold;
  int average;
  static void Declare(Fields<MultilabelF1Param>& f) {
    using P = MultilabelF1Param;
    f.Add("average", &P::average)
        .Enum({{"macro", kMacro}, {"micro", kMicro}})
        .Default(kMacro)
        .Help("macro: the mean over classes; micro: over all predictions together");
    f.Add("threshold", &P::threshold).Default(0.5).Help("least score that predicts the class");
  }
};

// Calls f(class, guessed, labelled, row) for every score of the first `count` rows. A NaN score
// predicts nothing.
template <typename F>
void ForEachAnswer(const std::string& metric, const TBlob& label, const TBlob& pred, int64_t count,
                   double threshold, F&& f) {
  if (label.Size() != pred.Size()) {
    Throw(ErrorKind::kConfig,
          "metric {}: labels {} do not fit an output {}; it takes a label of 0 or 1 for each score",
          metric, label.shape.ToString(), pred.shape.ToString());
  }
  const int64_t classes = pred.shape.Product(1, pred.shape.ndim());
  for (int64_t i = 0; i < count * classes; ++i) {
    f(static_cast<size_t>(i % classes), static_cast<double>(pred.dptr<float>()[i]) >= threshold,
      label.dptr<float>()[i] > 0.5f, i / classes);
  }
}

// The fraction of right predictions over all classes of all examples.
class MultilabelAccuracy final : public MeanMetric {
 public:
  explicit MultilabelAccuracy(double threshold)
      : MeanMetric("multilabel_accuracy"), threshold_(threshold) {}
  bool higher_is_better() const override { return true; }

 protected:
  void Add(const TBlob& label, const TBlob& pred, int64_t count) override {
    ForEachAnswer(name(), label, pred, count, threshold_,
                  [this](size_t, bool guessed, bool labelled, int64_t row) {
                    AddValue(guessed == labelled ? 1 : 0, row);
                  });
  }

 private:
  const double threshold_;
};

// 2 tp / (2 tp + fp + fn); a class that is neither labelled nor predicted does not count in the
// mean.
class MultilabelF1 final : public ClassCountMetric {
 public:
  explicit MultilabelF1(const MultilabelF1Param& param)
      : ClassCountMetric("multilabel_f1"), param_(param) {}
  double value() const override {
    Counts all;
    double sum = 0;
    int64_t classes = 0;
    for (const Counts& n : counts_) {
      all = {all.right + n.right, all.labelled + n.labelled, all.guessed + n.guessed};
      if (n.none()) continue;
      sum += n.F1();
      ++classes;
    }
    if (classes == 0) return kUndefined;
    return param_.average == MultilabelF1Param::kMicro ? all.F1()
                                                       : sum / static_cast<double>(classes);
  }

 protected:
  void Add(const TBlob& label, const TBlob& pred, int64_t count) override {
    counts_.resize(static_cast<size_t>(pred.shape.Product(1, pred.shape.ndim())));
    ForEachAnswer(name(), label, pred, count, param_.threshold,
                  [this](size_t k, bool guessed, bool labelled, int64_t row) {
                    const double weight = WeightOf(row);
                    counts_[k].right += guessed && labelled ? weight : 0;
                    counts_[k].labelled += labelled ? weight : 0;
                    counts_[k].guessed += guessed ? weight : 0;
                  });
  }

 private:
  const MultilabelF1Param param_;
};

}  // namespace

std::unique_ptr<Metric> NewMultilabelAccuracy(const Kwargs& kwargs) {
  MultilabelAccuracyParam param;
  param.Init(kwargs, "metric multilabel_accuracy");
  return std::make_unique<MultilabelAccuracy>(param.threshold);
}
std::unique_ptr<Metric> NewMultilabelF1(const Kwargs& kwargs) {
  MultilabelF1Param param;
  param.Init(kwargs, "metric multilabel_f1");
  return std::make_unique<MultilabelF1>(param);
}
std::vector<FieldInfo> DescribeMultilabelAccuracy() {
  return MultilabelAccuracyParam::Describe();
}
std::vector<FieldInfo> DescribeMultilabelF1() {
  return MultilabelF1Param::Describe();
}

}  // namespace mxtrain
