// SPDX-License-Identifier: Apache-2.0
#pragma once
// Teams for products of matrices in 16 bits by the matrix units of a GPU: kTileWarps warps with
// memory that they share. As with rows.h, what a team computes is written once. On a GPU
// (tile_team.cuh) a team is a block; tests run the same code on the host, where warps are as
// independent of each other as on a GPU (tests/support/tile_device.h).
//
//   struct Work {
//     template <typename Team>
//     MXTRAIN_HD void operator()(const Team& team, int64_t task) const;
//   };
//   ForTiles(device, tasks, Work{...});                     // for every task in [0, tasks)
//
// A team has
//   int rank() const; size(), warp(), lane()                of a member: a thread
//   T* Shared<T, kCount>() const                            the same array for all members; one
//                                                           such call in a kernel
//   void Sync() const                                       all members; what they wrote is seen
//   void CopyAsync(const void* from, void* to) const        16 aligned bytes into shared memory,
//   void AwaitCopies() const                                there at last after this, for the
//                                                           member; after Sync, for all
// and, called by all lanes of a warp together,
//   V ShuffleXor(V value, int mask) const                   the value of lane ^ mask
//   void LoadMatrices(const T* row, Fragment<4>* to) const  see below
//   void LoadTransposed(const T* row, Fragment<4>* to) const
//   void Multiply<T>(a, b0, b1, c) const                    C += A B
//
// Matrices lie in registers as the instructions of NVIDIA's PTX have them (ISA 8.5: "Matrix
// fragments for mma.m16n8k16", "ldmatrix"). With g = lane / 4 and t = lane % 4 a lane has of
//   A [16, 16]: register 0: (g, 2t), (g, 2t + 1); 1: the same of row g + 8; 2, 3: of columns + 8
//   B [16, 8]:  register 0: (2t, g), (2t + 1, g); 1: the same of rows + 8
//   C [16, 8]:  float 0, 1: (g, 2t), (g, 2t + 1); 2, 3: the same of row g + 8
// LoadMatrices loads four matrices [8, 8] from shared memory; lane l says where row l % 8 of matrix
// l / 8 begins (8 adjacent elements, aligned to 16 bytes). Register i has of matrix i (g, 2t) and
// (g, 2t + 1), after LoadTransposed (2t, g) and (2t + 1, g).
#include <cstdint>

#include "mxtrain/operator/kernel.h"

namespace mxtrain {

inline constexpr int kTileWarps = 4, kTileLanes = 32, kTileMembers = kTileWarps * kTileLanes;
inline constexpr int kTileAlignment = 16;  // bytes, of what CopyAsync copies

// Registers with two elements of 16 bits each, the first one in the lower half.
template <int kCount>
struct Fragment {
  uint32_t r[kCount];
};

template <typename T>
MXTRAIN_HD inline uint32_t PairOf(float low, float high) {
  static_assert(sizeof(T) == 2);
  return static_cast<uint32_t>(T(low).bits) | static_cast<uint32_t>(T(high).bits) << 16;
}

// A matrix [rows, kColumns] in shared memory. Eight rows begin in different banks.
template <typename T, int kColumns>
struct SharedTile {
  static constexpr int kPitch = kColumns + 8;
  T* data;

  MXTRAIN_HD T* At(int row, int column) const { return data + row * kPitch + column; }

  // A's fragment at (row, column).
  template <typename Team>
  MXTRAIN_HD void LoadLeft(const Team& team, int row, int column, Fragment<4>* to) const {
    team.LoadMatrices(At(row + team.lane() % 16, column + team.lane() / 16 * 8), to);
  }
  // B's fragments of the transposed tile, for its rows `column` to + 15 and its columns `row` to +
  // 15: registers 0 and 1 of the first eight columns, 2 and 3 of the others.
  template <typename Team>
  MXTRAIN_HD void LoadRightTransposed(const Team& team, int row, int column,
                                      Fragment<4>* to) const {
    const int lane = team.lane();
    team.LoadMatrices(At(row + lane % 8 + lane / 16 * 8, column + lane / 8 % 2 * 8), to);
  }
  // The same of the tile itself, for its rows `row` to + 15 and its columns `column` to + 15.
  template <typename Team>
  MXTRAIN_HD void LoadRight(const Team& team, int row, int column, Fragment<4>* to) const {
    team.LoadTransposed(At(row + team.lane() % 16, column + team.lane() / 16 * 8), to);
  }

  // Rows [first, first + count) of an array [rows, columns], zeros where it ends, by all members.
  // They are there after AwaitCopies and Sync.
  template <typename Team>
  MXTRAIN_HD void Load(const Team& team, const T* array, int64_t rows, int64_t columns,
                       int64_t first, int count) const {
    constexpr int kPack = kTileAlignment / sizeof(T);
    const bool packs =
        columns % kPack == 0 && reinterpret_cast<uintptr_t>(array) % kTileAlignment == 0;
    for (int i = team.rank(); i < count * (kColumns / kPack); i += team.size()) {
      const int row = i / (kColumns / kPack), column = i % (kColumns / kPack) * kPack;
      T* const to = At(row, column);
      const int64_t left = first + row < rows ? columns - column : 0,
                    from = (first + row) * columns + column;
      if (packs && left > 0) {
        team.CopyAsync(array + from, to);
      } else {
        for (int k = 0; k < kPack; ++k) to[k] = k < left ? array[from + k] : T(0.0f);
      }
    }
  }
};

}  // namespace mxtrain
