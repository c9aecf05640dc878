// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/holdout_source.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "mxtrain/base/file.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/io/example_files.h"
#include "mxtrain/io/internal/holdout_groups.h"
#include "mxtrain/io/subset.h"

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

// Orders examples by random numbers, each determined by the example's number, so adding a class
// keeps the order within the others, or by its file, so that adding a file keeps it too.
class RandomOrder {
 public:
  RandomOrder(const Source& source, const HoldoutParam& param, std::string root)
      : source_(source),
        seed_(static_cast<uint64_t>(param.holdout_seed)),
        by_file_(param.holdout_draw == HoldoutParam::kByFile),
        root_(std::move(root)) {}

  void Sort(std::vector<int64_t>* members) const {
    std::vector<std::pair<uint32_t, int64_t>> keys;
    for (const int64_t i : *members) keys.emplace_back(KeyOf(i), i);
    std::sort(keys.begin(), keys.end());
    std::transform(keys.begin(), keys.end(), members->begin(),
                   [](const auto& key) { return key.second; });
  }

 private:
  uint32_t KeyOf(int64_t index) const {
    const std::string file = by_file_ ? FileBelow(source_, index, root_) : "";
    return PhiloxAt(seed_, stream_, 0,
                    file.empty() ? static_cast<uint64_t>(index) : Checksum(file));
  }

  const Source& source_;
  const uint64_t seed_, stream_ = StreamOf("io.holdout");
  const bool by_file_;
  const std::string root_;
};

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
    notes_ = source_->notes();
    warnings_ = source_->warnings();
    losses_ = source_->losses();
    found_ = source_->found();
  }
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return source_->data_fields(); }
  const std::vector<FieldSpec>& label_fields() const override { return source_->label_fields(); }
  void Read(int64_t index, Sample* sample) const override { source_->Read(At(index), sample); }
  std::span<const float> LabelOf(int64_t index, size_t position, Sample* scratch) const override {
    return source_->LabelOf(At(index), position, scratch);
  }
  std::span<const float> Rests(int64_t index, bool label, size_t position) const override {
    return source_->Rests(At(index), label, position);
  }
  std::string Name(int64_t index) const override { return source_->Name(At(index)); }
  std::string FileOf(int64_t index) const override { return source_->FileOf(At(index)); }
  std::string GroupOf(int64_t index) const override { return source_->GroupOf(At(index)); }
  std::string TextOf(int64_t index) const override { return source_->TextOf(At(index)); }
  bool IsCut(int64_t index) const override { return source_->IsCut(At(index)); }
  int64_t num_tokens() const override { return source_->num_tokens(); }
  bool ignores_labels() const override { return source_->ignores_labels(); }
  std::optional<int> ClassOf(int64_t index) const override { return source_->ClassOf(At(index)); }
  const std::vector<std::string>& class_names() const override { return source_->class_names(); }

 private:
  int64_t At(int64_t index) const { return indices_[static_cast<size_t>(index)]; }
  const std::shared_ptr<const Source> source_;
  const std::vector<int64_t> indices_;
};

// Whether fold `fold` gets one member more than the smallest of a stratum: those of `more` folds,
// in turn from where the stratum before ended, so that the sizes of all folds together agree.
bool IsLarger(int64_t fold, int64_t dealt, int64_t more, int64_t folds) {
  return (fold + folds - dealt % folds) % folds < more;
}

// The members of one fold, of a stratum in random order. `dealt`: examples of the strata before. By
// position they are dealt out in turn; by file a fold is a part of the order, so that a member more
// moves only the borders.
std::vector<int64_t> FoldOf(const std::vector<int64_t>& members, int64_t dealt,
                            const HoldoutParam& param) {
  const int64_t folds = param.holdout_folds, count = static_cast<int64_t>(members.size());
  std::vector<int64_t> fold;
  if (param.holdout_draw == HoldoutParam::kByPosition) {
    for (int64_t k = 0; k < count; ++k) {
      if ((dealt + k) % folds == param.holdout_fold)
        fold.push_back(members[static_cast<size_t>(k)]);
    }
    return fold;
  }
  const auto size_of = [&](int64_t f) {
    return count / folds + (IsLarger(f, dealt, count % folds, folds) ? 1 : 0);
  };
  int64_t begin = 0;
  for (int64_t f = 0; f < param.holdout_fold; ++f) begin += size_of(f);
  const auto first = members.begin() + begin;
  return {first, first + size_of(param.holdout_fold)};
}

void CheckFolds(const Source& source, const HoldoutParam& param) {
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
}

// The numbers of the examples in `members`, or of all others; ascending.
std::vector<int64_t> Side(std::vector<int64_t> members, const Source& source,
                          const HoldoutParam& param) {
  std::sort(members.begin(), members.end());
  if (param.holdout_side == HoldoutParam::kHeldOut) return members;
  std::vector<int64_t> all(static_cast<size_t>(source.size())), others;
  std::iota(all.begin(), all.end(), 0);
  std::set_difference(all.begin(), all.end(), members.begin(), members.end(),
                      std::back_inserter(others));
  return others;
}

}  // namespace

std::vector<int64_t> HoldoutIndices(const Source& source, const HoldoutParam& param,
                                    const std::string& root) {
  const RandomOrder order(source, param, root);
  const std::vector<int64_t> group = FindGroups(source, param, root);
  std::vector<int64_t> held_out;
  if (param.holdout_folds > 0) {
    CheckFolds(source, param);
    if (!group.empty()) return Side(HeldOutGroups(source, param, group), source, param);
    int64_t dealt = 0;
    for (Stratum& s : MakeStrata(source, param.holdout_stratified)) {
      order.Sort(&s.members);
      const std::vector<int64_t> fold = FoldOf(s.members, dealt, param);
      held_out.insert(held_out.end(), fold.begin(), fold.end());
      dealt += static_cast<int64_t>(s.members.size());
    }
    return Side(std::move(held_out), source, param);
  }
  if (source.size() < 2 || param.holdout <= 0 || param.holdout >= 1) {
    Throw(ErrorKind::kConfig,
          "holdout = {} of {} examples leaves nothing on one side; give a number between 0 and 1",
          param.holdout, source.size());
  }
  if (!group.empty()) return Side(HeldOutGroups(source, param, group), source, param);
  const int64_t wanted = std::clamp<int64_t>(
      std::llround(param.holdout * static_cast<double>(source.size())), 1, source.size() - 1);
  std::vector<Stratum> strata = MakeStrata(source, param.holdout_stratified);
  Apportion(param.holdout, wanted, &strata);
  for (Stratum& s : strata) {
    order.Sort(&s.members);
    held_out.insert(held_out.end(), s.members.begin(), s.members.begin() + s.taken);
  }
  std::vector<int64_t> indices = Side(std::move(held_out), source, param);
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
