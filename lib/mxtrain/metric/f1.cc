// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/metric/internal/classes.h"
#include "mxtrain/metric/internal/metrics.h"

namespace mxtrain {
namespace {

struct F1Param : Parameter<F1Param> {
  enum Average { kMacro, kBinary };
  int average;
  std::optional<int> ignore_label;
  static void Declare(Fields<F1Param>& f) {
    f.Add("average", &F1Param::average)
        .Enum({{"macro", kMacro}, {"binary", kBinary}})
        .Default(kMacro)
        .Help("macro: the mean over classes; binary: class 1 of two");
    f.Add("ignore_label", &F1Param::ignore_label)
        .Default(std::nullopt)
        .Help("examples with this label do not count");
  }
};

// 2 tp / (2 tp + fp + fn) of a class; classes that are neither labelled nor predicted do not count
// in the mean.
class F1 final : public ClassCountMetric {
 public:
  explicit F1(const F1Param& param) : ClassCountMetric("f1"), param_(param) {}
  double value() const override {
    double sum = 0;
    int64_t classes = 0;
    for (size_t c = param_.average == F1Param::kBinary ? 1 : 0; c < counts_.size(); ++c) {
      const Counts& n = counts_[c];
      if (n.none()) continue;
      sum += n.F1();
      ++classes;
    }
    return classes > 0 ? sum / static_cast<double>(classes) : kUndefined;
  }

 protected:
  void Add(const TBlob& label, const TBlob& pred, int64_t count) override {
    if (pred.shape.ndim() > 1) counts_.resize(static_cast<size_t>(pred.shape[1]));
    if (param_.average == F1Param::kBinary && counts_.size() != 2) {
      Throw(ErrorKind::kConfig,
            "metric f1: average = binary needs two classes, but the output is {}; use macro",
            pred.shape.ToString());
    }
    ForEachPosition(name(), label, pred, count, param_.ignore_label,
                    [&](const Scores& scores, int64_t wanted, int64_t row) {
                      const double weight = WeightOf(row);
                      counts_[static_cast<size_t>(wanted)].labelled += weight;
                      for (int64_t j = 0; j < scores.classes; ++j) {
                        if (RankOf(scores, j) != 0) continue;
                        counts_[static_cast<size_t>(j)].guessed += weight;
                        if (j == wanted) counts_[static_cast<size_t>(j)].right += weight;
                      }
                    });
  }

 private:
  const F1Param param_;
};

}  // namespace

std::unique_ptr<Metric> NewF1(const Kwargs& kwargs) {
  F1Param param;
  param.Init(kwargs, "metric f1");
  return std::make_unique<F1>(param);
}
std::vector<FieldInfo> DescribeF1() {
  return F1Param::Describe();
}

}  // namespace mxtrain
