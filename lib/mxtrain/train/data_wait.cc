// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/data_wait.h"

#include <algorithm>

#include "mxtrain/base/clock.h"

namespace mxtrain {

DataWait::DataWait(std::function<double()> now)
    : now_(now ? std::move(now) : SteadySeconds), idle_since_(now_()) {}

bool DataWait::Next(DataIter& iter, DataBatch* batch) {
  const double begin = now_();
  const bool more = iter.Next(batch);
  const MutexLock lock(mutex_);
  if (under_way_ == 0) seconds_ += now_() - std::max(begin, idle_since_);
  return more;
}

void DataWait::Pushed() {
  const MutexLock lock(mutex_);
  ++under_way_;
}

void DataWait::Done() {
  const MutexLock lock(mutex_);
  --under_way_;
  idle_since_ = now_();  // counts once none is under way
}

}  // namespace mxtrain
