#pragma once
// A source parted in two: what is trained on and what is held out for validation.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

// Parameters that every kind of source takes beside its own (MakeSource).
struct HoldoutParam : Parameter<HoldoutParam> {
  enum Side { kRest, kHeldOut };
  double holdout;
  int64_t holdout_seed;
  int holdout_side, holdout_folds, holdout_fold;
  bool holdout_stratified;
  static void Declare(Fields<HoldoutParam>& f) {
    using P = HoldoutParam;
    f.Add("holdout", &P::holdout).Default(0).Range(0, 1).Help("part of the examples that is held out; 0: nothing is parted");
    f.Add("holdout_folds", &P::holdout_folds)
        .Default(0)
        .Range(0, 1000)
        .Help("in place of a part: so many equal ones, of which one is held out");
    f.Add("holdout_fold", &P::holdout_fold).Default(0).Range(0, 999).Help("which of the folds, from 0");
    f.Add("holdout_side", &P::holdout_side).Enum({{"rest", kRest}, {"held_out", kHeldOut}}).Default(kRest).Help("which of the two parts");
    f.Add("holdout_seed", &P::holdout_seed).Default(0).Help("of the choice");
    f.Add("holdout_stratified", &P::holdout_stratified).Default(true).Help("each class in proportion, where there are classes");
  }
};

// The numbers of the examples of one side, ascending: a function of the parameters and of the classes of the examples alone. The two sides
// are disjoint and their union is the whole. round(holdout * size) are held out, at least 1 and not all. Stratified: each class gives
// its proportion, rounded down or up; a class of which there are two or more gives not all. With folds, those that are held out differ by
// at most one in size, and stratified in the number of each class; every example is held out by just one of them. Examples without a class,
// or with any number of them, are one stratum. Throws kConfig when there are fewer than two examples, fewer than folds, or nothing is left
// on one side.
MXTRAIN_API std::vector<int64_t> HoldoutIndices(const Source& source, const HoldoutParam& param);

// Those of the examples, in this order; classes, fields and warnings are those of the whole.
MXTRAIN_API std::unique_ptr<Source> NewSubset(std::shared_ptr<const Source> source, std::vector<int64_t> indices);

}  // namespace mxtrain::io
