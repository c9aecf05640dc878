#pragma once
// The loop of every CPU kernel: cuts [0, n) into one contiguous piece per thread of the calling lane's OpenMP team. The cut depends on n, the
// grain and the size of the team only, so that sums over pieces repeat bit for bit. Inside a piece a nested loop runs its pieces one after the other.
#include <cstdint>
#include <type_traits>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Size of the team of the calling thread.
MXTRAIN_API int TeamSize();
// Sets it, for the calling thread alone; a new thread does not see its creator's setting. kMemory where the system gives no such threads.
MXTRAIN_API void SetTeamSize(int threads);

namespace detail {
MXTRAIN_API void ParallelRun(int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t, int), void* closure);
}

// body(begin, end) for disjoint pieces that cover [0, n); each of at least `grain` indices, so that small loops stay on one thread.
// Exceptions must not leave the body.
template <typename Body>
void ParallelFor(int64_t n, int64_t grain, Body&& body) {
  detail::ParallelRun(
      n, grain, [](void* f, int64_t begin, int64_t end, int) { (*static_cast<std::remove_reference_t<Body>*>(f))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// body(begin, end, piece): `piece` < TeamSize() numbers the pieces, for partial results.
template <typename Body>
void ParallelForPieces(int64_t n, int64_t grain, Body&& body) {
  detail::ParallelRun(
      n, grain,
      [](void* f, int64_t begin, int64_t end, int piece) { (*static_cast<std::remove_reference_t<Body>*>(f))(begin, end, piece); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace mxtrain
