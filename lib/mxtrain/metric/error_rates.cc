// SPDX-License-Identifier: Apache-2.0
#include <climits>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/metric/edit_distance.h"
#include "mxtrain/metric/internal/metrics.h"

namespace mxtrain {
namespace {

enum { kBlankFirst, kBlankLast };

template <typename P>
void DeclareBlank(Fields<P>& f) {
  f.Add("blank_label", &P::blank_label)
      .Enum({{"first", kBlankFirst}, {"last", kBlankLast}})
      .Default(kBlankFirst)
      .Help("as that of CTCLoss. first: a label ends at 0; last: at -1");
}

struct CerParam : Parameter<CerParam> {
  int blank_label;
  static void Declare(Fields<CerParam>& f) { DeclareBlank(f); }
};
struct WerParam : Parameter<WerParam> {
  int blank_label, space;
  static void Declare(Fields<WerParam>& f) {
    DeclareBlank(f);
    f.Add("space", &WerParam::space)
        .Default(-1)
        .Range(-1, INT_MAX)
        .Help("the label between two words; -1: there is none, and a text is one word");
  }
};

using Letters = std::vector<int64_t>;

// Of labels [N, L], and of what ctc_greedy_decoder says, [N, steps, 2].
class ErrorRate : public MeanMetric {
 public:
  bool higher_is_better() const override { return false; }

 protected:
  ErrorRate(std::string name, int blank_label)
      : MeanMetric(std::move(name)), padding_(blank_label == kBlankFirst ? 0 : -1) {}

  virtual void AddText(const Letters& truth, const Letters& said, double weight) = 0;

  void Add(const TBlob& label, const TBlob& pred, int64_t count) override {
    const TShape &truth = label.shape, &said = pred.shape;
    if (truth.ndim() != 2 || said.ndim() != 3 || said[2] != 2) {
      Throw(ErrorKind::kConfig,
            "metric {}: labels {} and output {}; expected texts (N, letters) and what "
            "ctc_greedy_decoder says (N, steps, 2)",
            name(), truth.ToString(), said.ToString());
    }
    for (int64_t n = 0; n < count; ++n) {
      AddText(LettersOf(label.dptr<float>() + n * truth[1], truth[1], 1, padding_),
              LettersOf(pred.dptr<float>() + n * said[1] * 2, said[1], 2, -1), WeightOf(n));
    }
  }

 private:
  Letters LettersOf(const float* values, int64_t count, int64_t stride, int64_t end) const {
    Letters letters;
    for (int64_t i = 0; i < count; ++i) {
      const float value = values[i * stride];
      if (!std::isfinite(value))
        Throw(ErrorKind::kData, "metric {}: {} is no label", name(), value);
      const auto letter = static_cast<int64_t>(value);
      if (letter == end) break;
      letters.push_back(letter);
    }
    return letters;
  }

  const int64_t padding_;
};

class Cer final : public ErrorRate {
 public:
  explicit Cer(const CerParam& param) : ErrorRate("cer", param.blank_label) {}

 protected:
  void AddText(const Letters& truth, const Letters& said, double weight) override {
    sum_ += weight * static_cast<double>(EditDistance(truth, said));
    weight_ += weight * static_cast<double>(truth.size());
  }
};

class Wer final : public ErrorRate {
 public:
  explicit Wer(const WerParam& param) : ErrorRate("wer", param.blank_label), space_(param.space) {}

 protected:
  void AddText(const Letters& truth, const Letters& said, double weight) override {
    const std::vector<Letters> words = WordsOf(truth);
    sum_ += weight * static_cast<double>(EditDistance(words, WordsOf(said)));
    weight_ += weight * static_cast<double>(words.size());
  }

 private:
  std::vector<Letters> WordsOf(const Letters& text) const {
    std::vector<Letters> words;
    bool within = false;
    for (const int64_t letter : text) {
      if (letter == space_) {
        within = false;
        continue;
      }
      if (!within) words.emplace_back();
      within = true;
      words.back().push_back(letter);
    }
    return words;
  }

  const int64_t space_;
};

}  // namespace

std::unique_ptr<Metric> NewCer(const Kwargs& kwargs) {
  CerParam param;
  param.Init(kwargs, "metric cer");
  return std::make_unique<Cer>(param);
}
std::unique_ptr<Metric> NewWer(const Kwargs& kwargs) {
  WerParam param;
  param.Init(kwargs, "metric wer");
  return std::make_unique<Wer>(param);
}
std::vector<FieldInfo> DescribeCer() {
  return CerParam::Describe();
}
std::vector<FieldInfo> DescribeWer() {
  return WerParam::Describe();
}

}  // namespace mxtrain
