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
struct AddElement {
  MergedMove move;
  const T* from;
  T* to;
  MXTRAIN_HD void operator()(int64_t i) const {
    const MergedMove::Offsets at = move.Kept(i);
    Assign(OpReqType::kAddTo, to, at.to, static_cast<AccumulatorOf<T>>(from[at.from]));
  }
};

template <typename Word>
struct CopyWord {
  MergedMove move;
  const Word* from;
  Word* to;
  MXTRAIN_HD void operator()(int64_t i) const {
    const MergedMove::Offsets at = move.Kept(i);
    to[at.to] = from[at.from];
  }
};

struct alignas(16) Word16 {
  uint64_t halves[2];
};

// f(tag of an unsigned type of so many bytes, up to 16).
template <typename F>
void SwitchWord(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(TypeTag<uint8_t>{});
    case 2:
      return f(TypeTag<uint16_t>{});
    case 4:
      return f(TypeTag<uint32_t>{});
    case 8:
      return f(TypeTag<uint64_t>{});
    default:
      MXTRAIN_ASSERT(bytes == sizeof(Word16));
      return f(TypeTag<Word16>{});
  }
}

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
    if (add) {
      SwitchType(to.type, "a sum", [&](auto tag) {
        using T = typename decltype(tag)::type;
        Launch(device, move.kept_size, detail::AddElement<T>{move, from.dptr<T>(), to.dptr<T>()});
      });
      return;
    }
    const int64_t size = SizeOf(to.type), word = WordOf(move, size, from.data, to.data);
    const MergedMove words = InWords(move, word / size);
    detail::SwitchWord(word, [&](auto tag) {
      using Word = typename decltype(tag)::type;
      Launch(device, words.kept_size,
             detail::CopyWord<Word>{words, static_cast<const Word*>(from.data),
                                    static_cast<Word*>(to.data)});
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
