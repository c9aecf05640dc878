// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/ranks.h"

#include <algorithm>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/kvstore/collectives.h"

namespace mxtrain {

Ranks::~Ranks() = default;

void Ranks::Send(const Wishes& own) {
  vote_ = std::make_shared<Vote>();
  vote_->flags = {own.stop, own.save, own.out_of_time, own.diverged};
  group_->Start(group_->Reserve(),
                {.kind = Collective::Kind::kAllReduce,
                 .data = vote_->flags.data(),
                 .n = static_cast<int64_t>(vote_->flags.size()),
                 .type = DType::kInt32,
                 .reduction = Collective::Reduction::kMax},
                [vote = vote_](std::exception_ptr error) {
                  MutexLock lock(vote->mutex);
                  vote->arrived = true;
                  vote->error = std::move(error);
                  vote->changed.NotifyAll();
                });
}

Wishes Ranks::Receive() {
  if (!vote_) return {};
  const std::shared_ptr<Vote> vote = std::exchange(vote_, nullptr);
  MutexLock lock(vote->mutex);
  while (!vote->arrived) vote->changed.Wait(lock);
  if (vote->error) std::rethrow_exception(vote->error);
  return {vote->flags[0] != 0, vote->flags[1] != 0, vote->flags[2] != 0, vote->flags[3] != 0};
}

Wishes Ranks::AgreeLater(const Wishes& own) {
  if (!several()) return own;
  const Wishes before = Receive();
  Send(own);
  return before;
}

Wishes Ranks::Agree(const Wishes& own) {
  if (!several()) return own;
  Wishes all = AgreeLater(own);
  all |= Receive();
  return all;
}

NamedValues Ranks::Merge(EpochScores* scores) const {
  if (!several()) return scores->Values();
  const std::vector<std::string> states = group_->GatherText(scores->SaveState());
  scores->RestoreState(states[0]);
  for (size_t r = 1; r < states.size(); ++r) scores->Merge(states[r]);
  NamedValues values = scores->Values();
  if (!first()) scores->Reset();
  return values;
}

void Ranks::Share(const std::map<std::string, NDArray>& arrays) const {
  if (!several()) return;
  for (const auto& [name, array] : arrays) Broadcast(group_, array);
}

void Ranks::StartWaiting() {
  if (group_) waited_before_ = group_->stats().seconds;
  other_waiting_ = 0;
}

std::vector<double> Ranks::WaitingSeconds() const {
  if (!several()) return {};
  std::vector<double> all(static_cast<size_t>(size()));
  all[static_cast<size_t>(group_->rank())] =
      group_->stats().seconds - waited_before_ + other_waiting_;
  group_->Run(
      {.kind = Collective::Kind::kAllGather, .data = all.data(), .n = 1, .type = DType::kFloat64});
  return all;
}

std::vector<int64_t> Ranks::Sum(std::vector<int64_t> own) const {
  if (several()) group_->Run({.data = own.data(), .n = std::ssize(own), .type = DType::kInt64});
  return own;
}

std::string Ranks::FirstText(const std::string& own) const {
  if (!several()) return own;
  const std::vector<std::string> texts = group_->GatherText(own);
  const auto found = std::find_if(texts.begin(), texts.end(),
                                  [](const std::string& text) { return !text.empty(); });
  return found == texts.end() ? "" : *found;
}

void Ranks::Fail(const std::exception_ptr& error) const {
  if (group_) group_->Fail(format("this rank ended with an error: {}", WhatOf(error)));
}

SlowRank FindSlowRank(std::vector<double> waiting, double seconds) {
  constexpr double kLeastShare = 0.1;
  if (waiting.size() < 2) return {};
  const auto slowest = std::min_element(waiting.begin(), waiting.end());
  SlowRank result{static_cast<int>(slowest - waiting.begin())};
  const double least = *slowest;
  waiting.erase(slowest);
  const auto middle = waiting.begin() + static_cast<std::ptrdiff_t>(waiting.size() / 2);
  std::nth_element(waiting.begin(), middle, waiting.end());
  result.share = (*middle - least) / seconds;
  return result.share >= kLeastShare ? result : SlowRank{};
}

}  // namespace mxtrain
