// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/parallel.h"

#include <omp.h>

#include <algorithm>
#include <latch>

#include "mxtrain/base/mutex.h"
#include "mxtrain/base/thread.h"
#include "mxtrain/device/cpu/one_thread.h"

namespace mxtrain {

int TeamSize() {
  return omp_get_max_threads();
}

void SetTeamSize(int threads) {
  // OpenMP's runtime ends the process if the system cannot create a thread, so the same number of
  // threads is started here first, all alive at the same time. One team after the other, so that
  // none takes the room that another has found.
  static Mutex mutex;
  const MutexLock lock(mutex);
  std::latch told(1);
  ThreadGroup team([&told] { told.count_down(); });
  for (int i = 1; i < threads; ++i) team.Start([&told] { told.wait(); });
  team.End();
  omp_set_dynamic(0);
  omp_set_num_threads(std::max(threads, 1));
  // The runtime creates its threads now, while there is room, and keeps them for this thread.
#pragma omp parallel
  {}
}

// Without a parallel region: the runtime keeps the team.
OneThread::OneThread(bool wanted) : before_(wanted ? TeamSize() : 0) {
  if (before_ > 1) omp_set_num_threads(1);
}
OneThread::~OneThread() {
  if (before_ > 1) omp_set_num_threads(before_);
}

namespace detail {

void ParallelRun(int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t, int),
                 void* closure) {
  if (n <= 0) return;
  const int64_t pieces = std::clamp<int64_t>(n / std::max<int64_t>(grain, 1), 1, TeamSize());
  // The first `longer` pieces have one more index.
  const int64_t share = n / pieces, longer = n % pieces;
  auto run = [&](int64_t piece) {
    const int64_t begin = piece * share + std::min(piece, longer);
    body(closure, begin, begin + share + (piece < longer ? 1 : 0), static_cast<int>(piece));
  };
  if (pieces == 1 || omp_in_parallel()) {
    for (int64_t piece = 0; piece < pieces; ++piece) run(piece);
    return;
  }
  // Always uses the whole team, even for fewer pieces: libgomp ends the surplus threads of a
  // smaller team, and creating them again is slow.
#pragma omp parallel
  for (int64_t piece = omp_get_thread_num(); piece < pieces; piece += omp_get_num_threads())
    run(piece);
}

}  // namespace detail
}  // namespace mxtrain
