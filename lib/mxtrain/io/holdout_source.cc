// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/holdout_source.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "mxtrain/base/philox.h"

namespace mxtrain::io {
namespace {

// One class, or all examples: members in random order, and the number held out.
struct Stratum {
  std::vector<int64_t> members;
  int64_t taken = 0;
  double remainder = 0;
};

std::vector<Stratum> MakeStrata(const Source& source, bool stratified) {
  const bool by_class = stratified && source.num_classes() > 0 && source.ClassOf(0);
  std::vector<Stratum> strata(by_class ? static_cast<size_t>(source.num_classes()) : 1);
  for (int64_t i = 0; i < source.size(); ++i)
    strata[by_class ? static_cast<size_t>(*source.ClassOf(i)) : 0].members.push_back(i);
  return strata;
}

// Each example has a random number determined by its index, so adding a class keeps the order
// within the others.
void Shuffle(uint64_t seed, std::vector<int64_t>* members) {
  const uint64_t stream = StreamOf("io.holdout");
  const auto key = [&](int64_t i) { return PhiloxAt(seed, stream, 0, static_cast<uint64_t>(i)); };
  std::sort(members->begin(), members->end(),
            [&](int64_t a, int64_t b) { return std::pair(key(a), a) < std::pair(key(b), b); });
}

// Largest remainder method, so the sum is exact.
void Apportion(double part, int64_t wanted, std::vector<Stratum>* strata) {
  int64_t sum = 0;
  std::vector<Stratum*> order;
  for (Stratum& s : *strata) {
    const double exact = part * static_cast<double>(s.members.size());
    s.taken = static_cast<int64_t>(exact);
    s.remainder = exact - static_cast<double>(s.taken);
    sum += s.taken;
    order.push_back(&s);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Stratum* a, const Stratum* b) { return a->remainder > b->remainder; });
  for (Stratum* s : order) {
    if (sum < wanted && s->taken + 1 < static_cast<int64_t>(s->members.size())) ++s->taken, ++sum;
  }
}

class Subset final : public Source {
 public:
  Subset(std::shared_ptr<const Source> source, std::vector<int64_t> indices)
      : source_(std::move(source)), indices_(std::move(indices)) {
    warnings_ = source_->warnings();
    losses_ = source_->losses();
    found_ = source_->found();
  }
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return source_->data_fields(); }
  const std::vector<FieldSpec>& label_fields() const override { return source_->label_fields(); }
  void Read(int64_t index, Sample* sample) const override { source_->Read(At(index), sample); }
  std::string Name(int64_t index) const override { return source_->Name(At(index)); }
  std::string FileOf(int64_t index) const override { return source_->FileOf(At(index)); }
  std::optional<int> ClassOf(int64_t index) const override { return source_->ClassOf(At(index)); }
  const std::vector<std::string>& class_names() const override { return source_->class_names(); }

 private:
  int64_t At(int64_t index) const { return indices_[static_cast<size_t>(index)]; }
  const std::shared_ptr<const Source> source_;
  const std::vector<int64_t> indices_;
};

}  // namespace

namespace {

// Distributes all examples, in random order within their strata, to the folds in turn.
std::vector<int64_t> FoldIndices(const Source& source, const HoldoutParam& param) {
  if (param.holdout > 0)
    Throw(ErrorKind::kConfig, "holdout and holdout_folds are mutually exclusive");
  if (param.holdout_folds < 2 || param.holdout_fold >= param.holdout_folds) {
    Throw(ErrorKind::kConfig,
          "there is no fold {} of {}; at least two folds are needed, counted from 0",
          param.holdout_fold, param.holdout_folds);
  }
  if (source.size() < param.holdout_folds) {
    Throw(ErrorKind::kConfig, "{} examples are too few for {} folds", source.size(),
          param.holdout_folds);
  }
  std::vector<int64_t> indices;
  int64_t dealt = 0;
  for (Stratum& s : MakeStrata(source, param.holdout_stratified)) {
    Shuffle(static_cast<uint64_t>(param.holdout_seed), &s.members);
    for (const int64_t i : s.members) {
      const bool held_out = dealt++ % param.holdout_folds == param.holdout_fold;
      if (held_out == (param.holdout_side == HoldoutParam::kHeldOut)) indices.push_back(i);
    }
  }
  std::sort(indices.begin(), indices.end());
  return indices;
}

}  // namespace

std::vector<int64_t> HoldoutIndices(const Source& source, const HoldoutParam& param) {
  if (param.holdout_folds > 0) return FoldIndices(source, param);
  if (source.size() < 2 || param.holdout <= 0 || param.holdout >= 1) {
    Throw(ErrorKind::kConfig,
          "holdout = {} of {} examples leaves nothing on one side; give a number between 0 and 1",
          param.holdout, source.size());
  }
  const int64_t wanted = std::clamp<int64_t>(
      std::llround(param.holdout * static_cast<double>(source.size())), 1, source.size() - 1);
  std::vector<Stratum> strata = MakeStrata(source, param.holdout_stratified);
  Apportion(param.holdout, wanted, &strata);
  std::vector<int64_t> indices;
  for (Stratum& s : strata) {
    Shuffle(static_cast<uint64_t>(param.holdout_seed), &s.members);
    const auto border = s.members.begin() + s.taken;
    const bool held_out = param.holdout_side == HoldoutParam::kHeldOut;
    indices.insert(indices.end(), held_out ? s.members.begin() : border,
                   held_out ? border : s.members.end());
  }
  std::sort(indices.begin(), indices.end());
  if (indices.empty()) {
    Throw(ErrorKind::kConfig,
          "holdout = {} of {} examples in {} classes leaves nothing on one side; give another "
          "fraction, or more examples",
          param.holdout, source.size(), strata.size());
  }
  return indices;
}

std::unique_ptr<Source> NewSubset(std::shared_ptr<const Source> source,
                                  std::vector<int64_t> indices) {
  return std::make_unique<Subset>(std::move(source), std::move(indices));
}

}  // namespace mxtrain::io
