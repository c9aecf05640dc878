// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/internal/held_keys.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mxtrain/base/clock.h"
#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

constexpr int kNoticeTag = 0;
constexpr int kPriority = 1;        // of updates: before the operations of a step
constexpr double kSignsOfLife = 8;  // in the time that a rank is waited for
constexpr double kNanoseconds = 1e9;

// Fails the group if an answer is never begun, since an update failed.
class Unanswered {
 public:
  explicit Unanswered(std::shared_ptr<ProcessGroup> group) : group_(std::move(group)) {}
  Unanswered(Unanswered&&) noexcept = default;
  Unanswered& operator=(Unanswered&&) = delete;
  ~Unanswered() {
    if (group_) group_->Fail("this rank could not update what it holds for the others");
  }
  void Begun() { group_.reset(); }

 private:
  std::shared_ptr<ProcessGroup> group_;
};

}  // namespace

HeldKeys::HeldKeys(Runtime& runtime, std::shared_ptr<ProcessGroup> group,
                   std::vector<Parcel> parcels, const std::map<int, TensorSpec>& specs,
                   int64_t most)
    : runtime_(runtime),
      group_(std::move(group)),
      parcels_(std::move(parcels)),
      rests_in_(static_cast<size_t>(group_->size())),
      staleness_(static_cast<size_t>(most) + 1) {
  for (size_t p = 0; p < parcels_.size(); ++p) {
    const Parcel& parcel = parcels_[p];
    if (parcel.owner != group_->rank()) continue;
    Held& held = held_.emplace_back(Held{p, {}, {}, StalenessBound(group_->size(), most), {}});
    for (int key : parcel.keys) {
      const TensorSpec& spec = specs.at(key);
      values_[key] = NDArray::Zeros(runtime, spec.shape, spec.type, Context::cpu(), spec.layout);
      held.values.push_back(values_[key]);
    }
    for (int r = 0; r < group_->size(); ++r) {
      Inbox& inbox = held.inboxes.emplace_back(Inbox{ParcelArrays(runtime, parcel, specs)});
      inbox.arrays.whole.WaitToRead();
      inbox.memory = inbox.arrays.whole.data().data;
      inbox.bytes = inbox.arrays.whole.spec().Bytes();
    }
  }
}

void HeldKeys::Listen() {
  for (int r = 0; r < group_->size(); ++r) {
    if (r == group_->rank()) continue;
    ReceiveNotice(r);
    for (Held& held : held_) ReceiveGradient(&held, r);
  }
}

void HeldKeys::Close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
    updater_ = {};
  }
  // First what begins further messages.
  for (const Held& held : held_) {
    for (const Inbox& inbox : held.inboxes) runtime_.engine().Drain(inbox.arrays.whole.var());
  }
  {
    MutexLock lock(own_mutex_);
    while (sending_ > 0) sent_.Wait(lock);
  }
  group_->DropReceives();
  Fail(std::make_exception_ptr(Error(kRankLost, "the store was closed with gradients in flight")));
}

NDArray HeldKeys::Value(int key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? NDArray() : found->second;
}

void HeldKeys::SetUpdater(Rounds::Updater updater) {
  MutexLock lock(mutex_);
  updater_ = std::move(updater);
}

void HeldKeys::StartAt(int64_t updates) {
  MutexLock lock(mutex_);
  for (Held& held : held_) held.bound.StartAt(updates);
}

void HeldKeys::BeginRound() {
  MutexLock lock(mutex_);
  ++round_;
  for (Held& held : held_) held.bound.Begin();
}

void HeldKeys::Rest(bool call) {
  Notice notice;
  {
    MutexLock lock(mutex_);
    notice = {round_, call};
  }
  Rest(group_->rank(), notice);
  Notify(notice);
  group_->Rest(true);
}

void HeldKeys::Rest(int rank, const Notice& notice) {
  MutexLock lock(mutex_);
  if (notice.rests_in == 0) return;
  rests_in_[static_cast<size_t>(rank)] = notice.rests_in;
  if (notice.calls != 0) called_in_ = std::max(called_in_, notice.rests_in);
  if (notice.rests_in != round_) return;  // a repeated one came late
  for (Held& held : held_) {
    held.bound.Rest(rank);
    Apply(&held);
  }
}

bool HeldKeys::called() const {
  MutexLock lock(mutex_);
  return called_in_ == round_;
}

bool HeldKeys::AllRest() const {
  MutexLock lock(mutex_);
  for (int64_t round : rests_in_) {
    if (round != round_ && !group_->failed()) return false;
  }
  group_->Rest(false);
  return true;
}

void HeldKeys::ShowLife() {
  const double seconds = static_cast<double>(SteadyNanoseconds() - notified_ns_) / kNanoseconds;
  if (seconds > group_->SecondsOfWait() / kSignsOfLife) Notify({});
}

void HeldKeys::Notify(const Notice& notice) {
  notified_ns_ = SteadyNanoseconds();
  const auto sent = std::make_shared<Notice>(notice);
  for (int r = 0; r < group_->size(); ++r) {
    if (r == group_->rank()) continue;
    group_->Start({Message::Kind::kSend, r, kNoticeTag, sent.get(), sizeof *sent},
                  [sent](const std::exception_ptr&) {});  // an error has its own ways
  }
}

void HeldKeys::ReceiveNotice(int rank) {
  const auto notice = std::make_shared<Notice>();
  group_->Start({Message::Kind::kReceive, rank, kNoticeTag, notice.get(), sizeof *notice, false},
                [self = shared_from_this(), notice, rank](const std::exception_ptr& error) {
                  if (error) return self->Fail(error);
                  self->Rest(rank, *notice);
                  self->ReceiveNotice(rank);
                });
}

void HeldKeys::ReceiveGradient(Held* held, int rank) {
  const Inbox& inbox = held->inboxes[static_cast<size_t>(rank)];
  group_->Start(
      {Message::Kind::kReceive, rank, GradientTag(held->parcel), inbox.memory, inbox.bytes, false},
      [self = shared_from_this(), held, rank](const std::exception_ptr& error) {
        if (error) return self->Fail(error);
        self->Arrive(held, rank);
      });
}

void HeldKeys::Arrive(Held* held, int rank) {
  MutexLock lock(mutex_);
  held->arrived.push_back(rank);
  Apply(held);
}

// What has arrived, as far as the bound allows, in the order of arrival.
void HeldKeys::Apply(Held* held) {
  if (closed_) return;
  std::deque<int>& arrived = held->arrived;
  while (true) {
    const auto next = std::find_if(arrived.begin(), arrived.end(),
                                   [held](int rank) { return held->bound.Admits(rank); });
    if (next == arrived.end()) return;
    const int rank = *next;
    arrived.erase(next);
    const std::vector<int>& keys = parcels_[held->parcel].keys;
    const std::vector<NDArray>& parts = held->inboxes[static_cast<size_t>(rank)].arrays.parts;
    const int64_t before = held->bound.updates();
    staleness_[static_cast<size_t>(held->bound.Apply(rank))] += std::ssize(keys);
    updates_.clear();
    for (size_t k = 0; k < keys.size(); ++k)
      updates_.push_back({keys[k], parts[k], held->values[k], kPriority});
    updater_(updates_, before, rank);
    for (size_t k = 0; k < keys.size(); ++k) NDArray(parts[k]).CopyFrom(held->values[k], kPriority);
    Answer(held, rank);
  }
}

// Once the new values are in the inbox, which nothing else touches until the next gradient arrives.
void HeldKeys::Answer(Held* held, int rank) {
  const engine::VarHandle var = held->inboxes[static_cast<size_t>(rank)].arrays.whole.var();
  runtime_.engine().PushSync(
      [self = shared_from_this(), held, rank, unanswered = Unanswered(group_)](RunContext) mutable {
        unanswered.Begun();
        rank == self->group_->rank() ? self->AnswerOwn(held) : self->Send(held, rank);
      },
      {}, {&var, 1},
      {.property = engine::FnProperty::kComm, .priority = kPriority, .name = "answer"});
}

void HeldKeys::Send(Held* held, int rank) {
  const Inbox& inbox = held->inboxes[static_cast<size_t>(rank)];
  {
    MutexLock lock(own_mutex_);
    ++sending_;
  }
  group_->Start({Message::Kind::kSend, rank, AnswerTag(held->parcel), inbox.memory, inbox.bytes},
                [self = shared_from_this(), held, rank](const std::exception_ptr& error) {
                  if (!error) self->ReceiveGradient(held, rank);
                  MutexLock lock(self->own_mutex_);
                  --self->sending_;
                  self->sent_.NotifyAll();
                });
}

void HeldKeys::AnswerOwn(Held* held) {
  std::optional<OwnPush> push;
  {
    MutexLock lock(own_mutex_);
    const auto found = own_.find(held->parcel);
    if (found == own_.end()) return;  // it has failed
    push.emplace(std::move(found->second));
    own_.erase(found);
  }
  const Inbox& inbox = held->inboxes[static_cast<size_t>(group_->rank())];
  std::memcpy(push->memory, inbox.memory, static_cast<size_t>(inbox.bytes));
  push->done();
}

void HeldKeys::Push(size_t parcel, void* memory, engine::Callback done) {
  const auto held = std::find_if(held_.begin(), held_.end(),
                                 [parcel](const Held& h) { return h.parcel == parcel; });
  MXTRAIN_ASSERT(held != held_.end());
  std::exception_ptr error;
  {
    MutexLock lock(own_mutex_);
    error = error_;
    if (!error) own_.emplace(parcel, OwnPush{memory, std::move(done)});
  }
  if (error) return done(error);
  const Inbox& inbox = held->inboxes[static_cast<size_t>(group_->rank())];
  std::memcpy(inbox.memory, memory, static_cast<size_t>(inbox.bytes));
  Arrive(&*held, group_->rank());
}

void HeldKeys::Fail(const std::exception_ptr& error) {
  std::map<size_t, OwnPush> own;
  {
    MutexLock lock(own_mutex_);
    if (!error_) error_ = error;
    own.swap(own_);
  }
  for (auto& [parcel, push] : own) push.done(error);
}

std::vector<int64_t> HeldKeys::TakeStaleness() {
  MutexLock lock(mutex_);
  std::vector<int64_t> taken(staleness_.size());
  taken.swap(staleness_);
  return taken;
}

}  // namespace mxtrain
