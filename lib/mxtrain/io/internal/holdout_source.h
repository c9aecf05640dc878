// SPDX-License-Identifier: Apache-2.0
#pragma once
// A source split in two: examples for training and examples held out for validation.
#include <memory>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

// Parameters that every kind of source takes besides its own (MakeSource).
struct HoldoutParam : Parameter<HoldoutParam> {
  enum Side { kRest, kHeldOut };
  enum Draw { kByPosition, kByFile };
  double holdout;
  int64_t holdout_seed;
  int holdout_side, holdout_folds, holdout_fold, holdout_draw;
  bool holdout_stratified;
  std::string holdout_group_pattern;
  static void Declare(Fields<HoldoutParam>& f) {
    using P = HoldoutParam;
    f.Add("holdout", &P::holdout)
        .Default(0)
        .Range(0, 1)
        .Help("fraction of the examples held out; 0: no split");
    f.Add("holdout_folds", &P::holdout_folds)
        .Default(0)
        .Range(0, 1000)
        .Help("instead of a fraction: number of equal folds, one of which is held out");
    f.Add("holdout_fold", &P::holdout_fold).Default(0).Range(0, 999).Help("which fold, from 0");
    f.Add("holdout_side", &P::holdout_side)
        .Enum({{"rest", kRest}, {"held_out", kHeldOut}})
        .Default(kRest)
        .Help("which side of the split");
    f.Add("holdout_seed", &P::holdout_seed).Default(0).Help("seed of the split");
    f.Add("holdout_stratified", &P::holdout_stratified)
        .Default(true)
        .Help("split each class in proportion, if there are classes");
    f.Add("holdout_group_pattern", &P::holdout_group_pattern)
        .Default("")
        .Help(
            "a regular expression (ECMAScript) searched in the paths of files below the root: "
            "files where it matches the same, or its first group does, stay on one side");
    f.Add("holdout_draw", &P::holdout_draw)
        .Enum({{"position", kByPosition}, {"file", kByFile}})
        .Default(kByPosition)
        .Help(
            "what the random order of examples is drawn by: their numbers, or, if they have them, "
            "the paths of their files");
  }
};

// The example numbers of one side, ascending: a function of the parameters and the examples'
// classes. The sides are disjoint and cover the source. round(holdout * size) examples are held
// out, at least 1 and not all. Stratified: each class contributes its proportion, rounded up or
// down; a class with two or more examples never all. Folds differ by at most one in size and, if
// stratified, in the count of each class; every example is in exactly one. Examples without a
// class, or with sets of classes, form one stratum. Drawn by file (paths below `root`), a file that
// is added or removed moves no others to another side than those at the borders: of a fraction one
// or two, of folds one for each class and border; drawn by position it moves any number. Throws
// kConfig if there are fewer than two examples or fewer than folds, or if one side is empty.
//
// Examples of one group (Source::GroupOf, or holdout_group_pattern) are all on one side, or in one
// fold: groups, the largest first and those of a size in random order, go where most examples of
// their classes are still wanted, so that sizes and, if stratified, classes are as near to their
// proportions as groups allow. An example without a group is one of its own. Throws kConfig if
// there are fewer groups than sides, for a pattern that is none, and one that matches no file.
MXTRAIN_API std::vector<int64_t> HoldoutIndices(const Source& source, const HoldoutParam& param,
                                                const std::string& root);

}  // namespace mxtrain::io
