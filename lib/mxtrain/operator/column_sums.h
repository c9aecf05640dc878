// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums over a part of a team's members (rows.h), where several columns of an array lie side by
// side.
#include "mxtrain/operator/rows.h"

namespace mxtrain {

// A length of rows for which ForRows takes a GPU's largest teams, blocks.
inline constexpr int64_t kLongRow = int64_t{1} << 20;

// Members of a device's largest teams.
template <typename Device>
int MembersOf() {
  if constexpr (requires { Device::kMembers; }) return Device::kMembers;
  return 256;
}

// Members whose ranks are equal modulo `across` form a column; the last ones, if they are fewer
// than `across`, are in none. put(column, i, sum) with the sum of values[i] over each column, by
// some member. All members call it together.
template <int kCount, typename Team, typename V, typename Put>
MXTRAIN_HD void SumColumns(const Team& team, int across, const V (&values)[kCount],
                           const Put& put) {
  constexpr int kMembers = Team::size(), kLargestWarp = 32;
  const int rows = kMembers / across;
  if constexpr (kMembers > kLargestWarp) {  // a block, through its shared memory
    V* all = nullptr;
    MXTRAIN_ON_DEVICE(__shared__ __align__(16) unsigned char room[kCount * kMembers * sizeof(V)];
                      all = reinterpret_cast<V*>(room);)
    for (int i = 0; i < kCount; ++i) all[i * kMembers + team.rank()] = values[i];
    MXTRAIN_ON_DEVICE(__syncthreads();)
    for (int at = team.rank(); at < across * kCount; at += kMembers) {
      const int column = at % across, i = at / across;
      V sum{};
      for (int row = 0; row < rows; ++row) sum = sum + all[i * kMembers + row * across + column];
      put(column, i, sum);
    }
    MXTRAIN_ON_DEVICE(__syncthreads();)  // before the next sums are written there
  } else {
    for (int column = 0; column < across; ++column) {
      for (int i = 0; i < kCount; ++i) {
        const bool mine = team.rank() < rows * across && team.rank() % across == column;
        const V sum = team.Fold(mine ? values[i] : V{}, AddBoth{});
        if (team.rank() == 0) put(column, i, sum);
      }
    }
  }
}

}  // namespace mxtrain
