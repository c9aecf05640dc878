#pragma once
// How long training waits for data: the time in which no batch is computed on because the next one is not there yet.
//
// A batch is under way from its push until everything that it computes is done, on a GPU too: gradients, and with the last batch of a step the
// updates. Of each call of DataIter::Next that part counts in which none is under way: from the call, or from the end of the last batch where
// that comes later, until the batch is handed over. As long as one is under way the device has work, and a call that waits costs nothing. What
// does not count: the copy of a batch to a GPU, which is waited for only after a batch that came late, and pauses that are not the data's
// (reports, evaluation, saves).
#include <cstdint>
#include <functional>
#include <mutex>

#include "mxtrain/io/data_iter.h"

namespace mxtrain {

class MXTRAIN_API DataWait {
 public:
  // `now`: seconds on a clock that never goes back; empty: the steady clock.
  explicit DataWait(std::function<double()> now = {});

  // On the thread that trains.
  bool Next(DataIter& iter, DataBatch* batch);  // iter.Next(batch), counted
  void Pushed();                                // ahead of a batch's push
  double seconds() const { return seconds_; }   // waited so far
  // On any thread, once for each Pushed.
  void Done();

 private:
  const std::function<double()> now_;
  double seconds_ = 0;
  std::mutex mutex_;
  int64_t under_way_ = 0;  // guarded by mutex_
  double idle_since_ = 0;  // likewise: when the last batch under way was done
};

}  // namespace mxtrain
