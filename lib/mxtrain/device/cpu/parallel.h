// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loop of every CPU kernel: divides [0, n) into one contiguous piece per thread of the calling
// lane's OpenMP team. The division depends only on n, the grain and the team size, so sums over
// pieces repeat bit for bit. A nested loop inside a piece runs its pieces sequentially.
#include <cstdint>
#include <type_traits>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Team size of the calling thread.
MXTRAIN_API int TeamSize();
// Sets it for the calling thread alone; a new thread does not inherit the setting. kMemory if the
// system cannot create the threads.
MXTRAIN_API void SetTeamSize(int threads);

namespace detail {
MXTRAIN_API void ParallelRun(int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t, int),
                             void* closure);
}

// body(begin, end) for disjoint pieces that cover [0, n), each of at least `grain` indices, so
// small loops stay on one thread. The body must not throw.
template <typename Body>
void ParallelFor(int64_t n, int64_t grain, Body&& body) {
  detail::ParallelRun(
      n, grain,
      [](void* f, int64_t begin, int64_t end, int) {
        (*static_cast<std::remove_reference_t<Body>*>(f))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// body(begin, end, piece): `piece` < TeamSize() numbers the pieces, for partial results.
template <typename Body>
void ParallelForPieces(int64_t n, int64_t grain, Body&& body) {
  detail::ParallelRun(
      n, grain,
      [](void* f, int64_t begin, int64_t end, int piece) {
        (*static_cast<std::remove_reference_t<Body>*>(f))(begin, end, piece);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace mxtrain
