// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/data_wait.h"

#include <algorithm>
#include <chrono>

namespace mxtrain {
namespace {

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

DataWait::DataWait(std::function<double()> now)
    : now_(now ? std::move(now) : SteadySeconds), idle_since_(now_()) {}

bool DataWait::Next(DataIter& iter, DataBatch* batch) {
  const double begin = now_();
  const bool more = iter.Next(batch);
  const std::lock_guard lock(mutex_);
  if (under_way_ == 0) seconds_ += now_() - std::max(begin, idle_since_);
  return more;
}

void DataWait::Pushed() {
  const std::lock_guard lock(mutex_);
  ++under_way_;
}

void DataWait::Done() {
  const std::lock_guard lock(mutex_);
  if (--under_way_ == 0) idle_since_ = now_();
}

}  // namespace mxtrain
