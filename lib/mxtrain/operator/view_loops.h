// SPDX-License-Identifier: Apache-2.0
#pragma once
// RunMove and RunFill (view_moves.h) as code written once for all devices; the CPU has faster ones
// of its own.
#include <cstdlib>

#include "mxtrain/operator/rows.h"
#include "mxtrain/operator/view_moves.h"

namespace mxtrain {
namespace detail {

template <typename T>
struct MoveElement {
  MergedMove move;
  const T* from;
  T* to;
  bool add;
  MXTRAIN_HD void operator()(int64_t i) const {
    const MergedMove::Offsets at = move.Kept(i);
    if (add) {
      Assign(OpReqType::kAddTo, to, at.to, static_cast<AccumulatorOf<T>>(from[at.from]));
    } else {
      to[at.to] = from[at.from];
    }
  }
};

template <typename T>
struct FillElement {
  MergedMove move;
  AccumulatorOf<T> value;
  T* to;
  OpReqType req;
  MXTRAIN_HD void operator()(int64_t i) const { Assign(req, to, move.Kept(i).to, value); }
};

// As AddBoth; integers wrap around.
struct PlusBoth {
  template <typename V>
  MXTRAIN_HD V operator()(V a, V b) const {
    return Plus(a, b);
  }
};

template <typename T, typename To>
struct SumElement {
  MergedMove move;
  const T* from;
  To* to;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t i) const {
    using A = AccumulatorOf<T>;
    const MergedMove::Offsets at = move.Kept(i);
    A sum = 0;
    for (int64_t k = team.rank(); k < move.summed_size; k += team.size())
      sum = Plus(sum, static_cast<A>(from[at.from + move.Term(k)]));
    sum = team.Fold(sum, PlusBoth{});
    if (team.rank() == 0) Assign(req, to, at.to, sum);
  }
};

// Whether a team adds the terms of an element: enough terms, closer together than the elements, or
// only one element.
inline bool TeamsSum(const MergedMove& move) {
  constexpr int64_t kEnough = 32;
  if (move.summed_size < kEnough) return false;
  const MergedMove::Axis &element = move.axes[move.kept - 1],
                         &term = move.axes[move.kept + move.summed - 1];
  return move.kept_size == 1 || std::abs(term.from) < std::abs(element.from);
}

}  // namespace detail

template <typename Device>
void RunMove(const Device& device, const MergedMove& move, const TBlob& from, const TBlob& to,
             bool add) {
  if (move.kept_size == 0) return;
  if (move.summed == 0 && from.type == to.type) {
    SwitchType(to.type, "a copy", [&](auto tag) {
      using T = typename decltype(tag)::type;
      Launch(device, move.kept_size,
             detail::MoveElement<T>{move, from.dptr<T>(), to.dptr<T>(), add});
    });
    return;
  }
  SwitchSum(from.type, to.type, [&](auto from_tag, auto to_tag) {
    using T = typename decltype(from_tag)::type;
    using To = typename decltype(to_tag)::type;
    const detail::SumElement<T, To> sum{move, from.dptr<T>(), to.dptr<To>(),
                                        add ? OpReqType::kAddTo : OpReqType::kWriteTo};
    if (detail::TeamsSum(move)) {
      ForRows(device, move.kept_size, move.summed_size, sum);
    } else {
      ForColumns(device, move.kept_size, move.summed_size, sum);
    }
  });
}

template <typename Device>
void RunFill(const Device& device, const MergedMove& move, double value, const TBlob& to,
             bool add) {
  if (move.kept_size == 0) return;
  SwitchType(to.type, "a constant", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Launch(device, move.kept_size,
           detail::FillElement<T>{move, ConstantOf<T>(value), to.dptr<T>(),
                                  add ? OpReqType::kAddTo : OpReqType::kWriteTo});
  });
}

}  // namespace mxtrain
