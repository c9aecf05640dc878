// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums over a part of a team's members (rows.h), where several columns of an array lie side by
// side.
#include "mxtrain/operator/rows.h"

namespace mxtrain {

// A length of rows for which ForRows takes a GPU's largest teams, blocks.
inline constexpr int64_t kLongRow = int64_t{1} << 20;

namespace detail {

#if defined(__CUDACC__)
template <int kCount, typename Team, typename V, typename Put>
__device__ inline void SumColumnsOfBlock(const Team& team, int across, const V (&values)[kCount],
                                         const Put& put) {
  __shared__ __align__(16) unsigned char room[kCount * Team::size() * sizeof(V)];
  V* const all = reinterpret_cast<V*>(room);
  for (int i = 0; i < kCount; ++i) all[i * team.size() + team.rank()] = values[i];
  __syncthreads();
  for (int at = team.rank(); at < across * kCount; at += team.size()) {
    const int column = at % across, i = at / across;
    V sum{};
    for (int row = 0; row < team.size() / across; ++row)
      sum = sum + all[i * team.size() + row * across + column];
    put(column, i, sum);
  }
  __syncthreads();  // before the next sums are written there
}
#endif

}  // namespace detail

// Members whose ranks are equal modulo `across` form a column; the last ones, if they are fewer
// than `across`, are in none. put(column, i, sum) with the sum of values[i] over each column, by
// some member. All members call it together.
template <int kCount, typename Team, typename V, typename Put>
MXTRAIN_HD void SumColumns(const Team& team, int across, const V (&values)[kCount],
                           const Put& put) {
  constexpr int kLargestWarp = 32;
  if constexpr (Team::size() > kLargestWarp) {
    MXTRAIN_ON_DEVICE(detail::SumColumnsOfBlock(team, across, values, put);)
  } else {
    const bool whole = team.rank() < team.size() / across * across;
    for (int column = 0; column < across; ++column) {
      for (int i = 0; i < kCount; ++i) {
        const bool mine = whole && team.rank() % across == column;
        const V sum = team.Fold(mine ? values[i] : V{}, AddBoth{});
        if (team.rank() == 0) put(column, i, sum);
      }
    }
  }
}

}  // namespace mxtrain
