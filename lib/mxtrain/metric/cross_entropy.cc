// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/metric/internal/classes.h"
#include "mxtrain/metric/internal/metrics.h"

namespace mxtrain {
namespace {

struct CrossEntropyParam : Parameter<CrossEntropyParam> {
  double eps;
  std::optional<int> ignore_label;
  static void Declare(Fields<CrossEntropyParam>& f) {
    f.Add("eps", &CrossEntropyParam::eps)
        .Default(1e-12)
        .Range(0)
        .Help("added to the probability to keep its logarithm finite");
    f.Add("ignore_label", &CrossEntropyParam::ignore_label)
        .Default(std::nullopt)
        .Help("examples with this label do not count");
  }
};

// Mean of -ln(p[label] + eps) over probabilities p.
class CrossEntropy : public MeanMetric {
 public:
  explicit CrossEntropy(const CrossEntropyParam& param, std::string name = "cross_entropy")
      : MeanMetric(std::move(name)), param_(param) {}
  bool higher_is_better() const override { return false; }
  bool takes_losses() const override { return true; }

 protected:
  void Add(const TBlob& label, const TBlob& pred, int64_t count) override {
    ForEachPosition(name(), label, pred, count, param_.ignore_label,
                    [&](const Scores& p, int64_t wanted, int64_t row) {
                      AddValue(-std::log(static_cast<double>(p[wanted]) + param_.eps), row);
                    });
  }
  void AddLosses(const TBlob& label, const TBlob& losses, int64_t count) override {
    const int64_t of_row = label.shape[0] > 0 ? label.Size() / label.shape[0] : 0;
    for (int64_t i = 0; i < count * of_row; ++i) {
      const float wanted = label.dptr<float>()[i];
      if (param_.ignore_label && wanted == static_cast<float>(*param_.ignore_label)) continue;
      if (!(wanted >= 0) || wanted != std::floor(wanted))
        Throw(ErrorKind::kData, "metric {}: the label {} is no class", name(), wanted);
      AddValue(-std::log(std::exp(-static_cast<double>(losses.dptr<float>()[i])) + param_.eps),
               i / of_row);
    }
  }

 private:
  const CrossEntropyParam param_;
};

// exp of the cross entropy.
class Perplexity final : public CrossEntropy {
 public:
  explicit Perplexity(const CrossEntropyParam& param) : CrossEntropy(param, "perplexity") {}
  double value() const override { return std::exp(CrossEntropy::value()); }
};

}  // namespace

std::unique_ptr<Metric> NewCrossEntropy(const Kwargs& kwargs) {
  CrossEntropyParam param;
  param.Init(kwargs, "metric cross_entropy");
  return std::make_unique<CrossEntropy>(param);
}
std::unique_ptr<Metric> NewPerplexity(const Kwargs& kwargs) {
  CrossEntropyParam param;
  param.Init(kwargs, "metric perplexity");
  return std::make_unique<Perplexity>(param);
}
std::vector<FieldInfo> DescribeCrossEntropy() {
  return CrossEntropyParam::Describe();
}

}  // namespace mxtrain
