// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures how long training waits for data: the time in which no batch is computed because the
// next one is not ready.
//
// A batch is in flight from its push until everything it computes is done, including on a GPU:
// gradients, and with the last batch of a step the updates. Of each DataIter::Next the time without
// a batch in flight counts: from the call, or from the end of the last batch if later, until the
// batch is delivered. While one is in flight the device has work, and waiting costs nothing. Not
// counted: the copy of a batch to a GPU, which is waited for only after a late batch, and pauses
// for other reasons (reports, evaluation, saves).
#include <cstdint>
#include <functional>

#include "mxtrain/base/mutex.h"
#include "mxtrain/io/data_iter.h"

namespace mxtrain {

class MXTRAIN_API DataWait {
 public:
  // `now`: seconds on a monotonic clock; empty: the steady clock.
  explicit DataWait(std::function<double()> now = {});

  // On the training thread.
  bool Next(DataIter& iter, DataBatch* batch);  // iter.Next(batch), counted
  void Pushed();                                // before a batch's push
  double seconds() const { return seconds_; }   // waited so far
  // On any thread, once for each Pushed.
  void Done();

 private:
  const std::function<double()> now_;
  double seconds_ = 0;
  Mutex mutex_;
  int64_t under_way_ MXTRAIN_GUARDED_BY(mutex_) = 0;
  double idle_since_ MXTRAIN_GUARDED_BY(mutex_) = 0;  // when the last batch in flight was done
};

}  // namespace mxtrain
