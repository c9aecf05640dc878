// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/batch_ring.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace mxtrain::io {

void BatchRing::AddSlot(std::unique_ptr<Slot> slot) {
  MutexLock lock(mutex_);
  slots_.push_back(std::move(slot));
}

void BatchRing::Open(Slot* slot, engine::Callback finished) {
  {
    MutexLock lock(mutex_);
    if (!stopped_ && Wanted()) {
      slot->rows.data.clear();
      slot->rows.labels.clear();
      for (const NDArray& array : slot->data) slot->rows.data.push_back(array.data().data);
      for (const NDArray& array : slot->label)
        slot->rows.labels.push_back(array.data().dptr<float>());
      slot->rows.origins = slot->origins.empty() ? nullptr : slot->origins.data();
      slot->finished.emplace(std::move(finished));
      Begin(slot);
      work_.NotifyAll();
      return;
    }
    slot->state = Slot::kFree;
    changed_.NotifyAll();
  }
  finished();
}

void BatchRing::Begin(Slot* slot) {
  slot->state = Slot::kFilling;
  slot->batch = to_open_++;
  slot->next_row = 0;
  slot->rows_left = batch_size_;
  slot->in_work = 0;
  slot->bad.clear();
  slot->index.assign(static_cast<size_t>(batch_size_), -1);
  slot->error = nullptr;
  filling_.push_back(slot);
}

void BatchRing::Skip(Slot* slot) {
  MutexLock lock(mutex_);
  slot->state = Slot::kSkipped;
  changed_.NotifyAll();
}

bool BatchRing::Take(Claim* claim) {
  MutexLock lock(mutex_);
  for (;;) {
    if (stopped_) return false;
    const auto open = std::find_if(filling_.begin(), filling_.end(),
                                   [this](const Slot* s) { return s->next_row < batch_size_; });
    if (open == filling_.end()) {
      work_.Wait(lock);
      continue;
    }
    Slot* slot = *open;
    *claim = {slot, plan_, slot->batch, slot->next_row,
              std::min(slot->next_row + grain_, batch_size_)};
    slot->in_work += claim->end - claim->begin;
    slot->next_row = claim->end;
    return true;
  }
}

bool BatchRing::Give(const Claim& claim, std::vector<std::pair<int64_t, BadExample>> bad,
                     std::exception_ptr error) {
  MutexLock lock(mutex_);
  Slot* slot = claim.slot;
  const int64_t rows = claim.end - claim.begin;
  slot->rows_left -= rows;
  std::move(bad.begin(), bad.end(), std::back_inserter(slot->bad));
  if (error && !slot->error) slot->error = error;
  if (slot->rows_left == 0) return true;  // in_work stays above 0 until Finish
  slot->in_work -= rows;
  if (slot->in_work == 0) changed_.NotifyAll();
  return false;
}

void BatchRing::Finish(Slot* slot) {
  std::optional<engine::Callback> finished;
  {
    MutexLock lock(mutex_);
    std::erase(filling_, slot);
    slot->in_work = 0;
    slot->state = Slot::kFull;
    finished = std::exchange(slot->finished, std::nullopt);
    changed_.NotifyAll();
  }
  (*finished)();
}

void BatchRing::Restart(std::shared_ptr<const EpochPlan> plan, int64_t first_batch) {
  std::vector<engine::Callback> finished;
  {
    MutexLock lock(mutex_);
    plan_ = nullptr;  // slots opened meanwhile are finished at once
    for (Slot* slot : filling_) slot->next_row = batch_size_;
    while (AnyInWork()) changed_.Wait(lock);
    for (const auto& slot : slots_) {
      if (slot->state == Slot::kFull) slot->state = Slot::kFree;
    }
    plan_ = std::move(plan);
    to_open_ = to_deliver_ = first_batch;
    for (Slot* slot : std::exchange(filling_, {})) {  // still open for writing
      if (Wanted()) {
        Begin(slot);
      } else {
        slot->state = Slot::kFree;
        finished.push_back(*std::exchange(slot->finished, std::nullopt));
      }
    }
    work_.NotifyAll();
  }
  for (engine::Callback& callback : finished) callback();
}

bool BatchRing::AnyInWork() const {
  return std::any_of(filling_.begin(), filling_.end(),
                     [](const Slot* s) { return s->in_work != 0; });
}

int64_t BatchRing::CountOf(Slot::State state) const {
  return std::count_if(slots_.begin(), slots_.end(),
                       [state](const auto& slot) { return slot->state == state; });
}

Slot* BatchRing::FindState(Slot::State state) {
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [state](const auto& slot) { return slot->state == state; });
  return found == slots_.end() ? nullptr : found->get();
}

BatchRing::Event BatchRing::NextEvent() {
  MutexLock lock(mutex_);
  for (;;) {
    if (Slot* slot = FindState(Slot::kSkipped)) {
      slot->state = Slot::kFree;
      return {Event::kSkipped, slot};
    }
    if (plan_->batches - to_open_ > CountOf(Slot::kPushed)) {
      if (Slot* slot = FindState(Slot::kFree)) {
        slot->state = Slot::kPushed;
        return {Event::kPush, slot};
      }
      if (CountOf(Slot::kLeased) == static_cast<int64_t>(slots_.size()))
        return {Event::kGrow, nullptr};
    }
    if (to_deliver_ >= plan_->batches) return {Event::kEnd, nullptr};
    for (const auto& slot : slots_) {
      if (slot->state != Slot::kFull || slot->batch != to_deliver_) continue;
      ++to_deliver_;
      slot->state = Slot::kLeased;
      return {Event::kDelivered, slot.get()};
    }
    changed_.Wait(lock);
  }
}

std::shared_ptr<void> BatchRing::Lease(Slot* slot) {
  return std::shared_ptr<void>(nullptr,
                               [ring = shared_from_this(), slot](void*) { ring->Free(slot); });
}

void BatchRing::Free(Slot* slot) {
  MutexLock lock(mutex_);
  slot->state = Slot::kFree;
  changed_.NotifyAll();
}

std::shared_ptr<const EpochPlan> BatchRing::plan() const {
  MutexLock lock(mutex_);
  return plan_;
}

void BatchRing::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  work_.NotifyAll();
}

void BatchRing::Close() {
  std::vector<engine::Callback> finished;
  std::vector<NDArray> arrays;  // freed outside the lock
  {
    MutexLock lock(mutex_);
    for (Slot* slot : std::exchange(filling_, {}))
      finished.push_back(*std::exchange(slot->finished, std::nullopt));
    for (const auto& slot : slots_) {
      std::move(slot->data.begin(), slot->data.end(), std::back_inserter(arrays));
      std::move(slot->label.begin(), slot->label.end(), std::back_inserter(arrays));
      slot->data.clear();
      slot->label.clear();
    }
  }
  for (engine::Callback& callback : finished) callback();
}

}  // namespace mxtrain::io
