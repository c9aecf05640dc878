// SPDX-License-Identifier: Apache-2.0
#pragma once
// tile_team.h on the GPU, from compute capability 8.0 on.
#include <algorithm>

#include "mxtrain/operator/kernel.cuh"
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operator/tile_team.h"

namespace mxtrain {

// Marked for the host too because its callers are; it runs only on the device.
class TileTeam {
 public:
  MXTRAIN_HD int rank() const {
    MXTRAIN_ON_DEVICE(return static_cast<int>(threadIdx.x);)
    return 0;
  }
  MXTRAIN_HD static constexpr int size() { return kTileMembers; }
  MXTRAIN_HD int warp() const { return rank() / kTileLanes; }
  MXTRAIN_HD int lane() const { return rank() % kTileLanes; }

  template <typename T, int kCount>
  MXTRAIN_HD T* Shared() const {
    MXTRAIN_ON_DEVICE(__shared__ __align__(kTileAlignment) unsigned char room[kCount * sizeof(T)];
                      return reinterpret_cast<T*>(room);)
    return nullptr;
  }
  MXTRAIN_HD void Sync() const { MXTRAIN_ON_DEVICE(__syncthreads();) }
  MXTRAIN_HD void CopyAsync([[maybe_unused]] const void* from, [[maybe_unused]] void* to) const {
    MXTRAIN_ON_DEVICE(
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(Address(to)), "l"(from)
                     : "memory");)
  }
  MXTRAIN_HD void AwaitCopies() const {
    MXTRAIN_ON_DEVICE(asm volatile("cp.async.wait_all;" ::: "memory");)
  }

  template <typename V>
  MXTRAIN_HD V ShuffleXor(V value, [[maybe_unused]] int mask) const {
    MXTRAIN_ON_DEVICE(return detail::ShuffleXor(value, mask);)
    return value;
  }
  template <typename T>
  MXTRAIN_HD void LoadMatrices([[maybe_unused]] const T* row,
                               [[maybe_unused]] Fragment<4>* to) const {
    MXTRAIN_ON_DEVICE(
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to->r[0]), "=r"(to->r[1]), "=r"(to->r[2]), "=r"(to->r[3])
                     : "r"(Address(row))
                     : "memory");)
  }
  template <typename T>
  MXTRAIN_HD void LoadTransposed([[maybe_unused]] const T* row,
                                 [[maybe_unused]] Fragment<4>* to) const {
    MXTRAIN_ON_DEVICE(
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to->r[0]), "=r"(to->r[1]), "=r"(to->r[2]), "=r"(to->r[3])
                     : "r"(Address(row))
                     : "memory");)
  }
  template <typename T>
  MXTRAIN_HD void Multiply([[maybe_unused]] const Fragment<4>& a, [[maybe_unused]] uint32_t b0,
                           [[maybe_unused]] uint32_t b1, [[maybe_unused]] float (&c)[4]) const {
    static_assert(std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>);
    if constexpr (std::is_same_v<T, bfloat16>) {
      MXTRAIN_ON_DEVICE(
          asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
              : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
              : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));)
    } else {
      MXTRAIN_ON_DEVICE(
          asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
              : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
              : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));)
    }
  }

 private:
  // In the memory that a block shares.
  MXTRAIN_HD static uint32_t Address([[maybe_unused]] const void* shared) {
    MXTRAIN_ON_DEVICE(return static_cast<uint32_t>(__cvta_generic_to_shared(shared));)
    return 0;
  }
};

namespace detail {

template <typename F>
__global__ void __launch_bounds__(kTileMembers) TilesKernel(int64_t tasks, F f) {
  MXTRAIN_ON_DEVICE(
      if constexpr (__CUDA_ARCH__ >= 800) {
        for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) f(TileTeam{}, task);
      } else {
        __trap();  // compiled for a GPU without such units, and run on another
      })
}

}  // namespace detail

template <typename F>
void ForTiles(const OnGpu& device, int64_t tasks, const F& f) {
  static_assert(std::is_trivially_copyable_v<F>, "functors are copied to the device bytewise");
  constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;
  if (tasks == 0) return;
  detail::TilesKernel<<<static_cast<unsigned>(std::min(tasks, kMostBlocks)), kTileMembers, 0,
                        StreamOf(device.ctx).get()>>>(tasks, f);
  cuda::CheckLaunch("products of tiles");
}

}  // namespace mxtrain
