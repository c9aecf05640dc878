// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/metric/internal/classes.h"
#include "mxtrain/metric/internal/metrics.h"

namespace mxtrain {
namespace {

struct AccuracyParam : Parameter<AccuracyParam> {
  std::optional<int> ignore_label;
  static void Declare(Fields<AccuracyParam>& f) {
    f.Add("ignore_label", &AccuracyParam::ignore_label)
        .Default(std::nullopt)
        .Help("examples with this label do not count");
  }
};

struct TopKParam : Parameter<TopKParam> {
  int k;
  std::optional<int> ignore_label;
  static void Declare(Fields<TopKParam>& f) {
    f.Add("k", &TopKParam::k).Default(5).Range(1, 1e9).Help("how many guesses an example has");
    f.Add("ignore_label", &TopKParam::ignore_label)
        .Default(std::nullopt)
        .Help("examples with this label do not count");
  }
};

class Accuracy final : public MeanMetric {
 public:
  Accuracy(std::string name, int64_t k, std::optional<int> ignore)
      : MeanMetric(std::move(name)), k_(k), ignore_(ignore) {}
  bool higher_is_better() const override { return true; }

 protected:
  void Add(const TBlob& label, const TBlob& pred, int64_t count) override {
    ForEachPosition(name(), label, pred, count, ignore_,
                    [&](const Scores& scores, int64_t wanted, int64_t row) {
                      AddValue(RankOf(scores, wanted) < k_ ? 1 : 0, row);
                    });
  }

 private:
  const int64_t k_;
  const std::optional<int> ignore_;
};

}  // namespace

std::unique_ptr<Metric> NewAccuracy(const Kwargs& kwargs) {
  AccuracyParam param;
  param.Init(kwargs, "metric accuracy");
  return std::make_unique<Accuracy>("accuracy", 1, param.ignore_label);
}
std::unique_ptr<Metric> NewTopK(const Kwargs& kwargs) {
  TopKParam param;
  param.Init(kwargs, "metric top_k");
  return std::make_unique<Accuracy>(format("top_{}_accuracy", param.k), param.k,
                                    param.ignore_label);
}
std::vector<FieldInfo> DescribeAccuracy() {
  return AccuracyParam::Describe();
}
std::vector<FieldInfo> DescribeTopK() {
  return TopKParam::Describe();
}

}  // namespace mxtrain
