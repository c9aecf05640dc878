// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/internal/held_keys.h"

#include <algorithm>
#include <cstring>
#include <numeric>
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
    Held& held = held_.emplace_back();
    held.parcel = p;
    held.bounds = std::vector(parcel.keys.size(), StalenessBound(group_->size(), most));
    for (int key : parcel.keys) {
      const TensorSpec& spec = specs.at(key);
      values_[key] = NDArray::Zeros(runtime, spec.shape, spec.type, Context::cpu(), spec.layout);
      held.values.push_back(values_[key]);
    }
    const auto new_inbox = [&] {
      Inbox inbox(ParcelArrays(runtime, parcel, specs));
      inbox.arrays.whole.WaitToRead();
      const auto memory_of = [](const NDArray& array) {
        return Memory{array.data().data, array.spec().Bytes()};
      };
      inbox.whole = memory_of(inbox.arrays.whole);
      for (const NDArray& part : inbox.arrays.parts) inbox.parts.push_back(memory_of(part));
      return inbox;
    };
    for (int r = 0; r < group_->size(); ++r) {
      Inboxes& of_rank = held.inboxes.emplace_back(new_inbox());
      if (parcel.keys.size() > 1) of_rank.of_parts.emplace(new_inbox());
    }
  }
}

HeldKeys::Held* HeldKeys::HeldOf(size_t parcel) {
  const auto held = std::find_if(held_.begin(), held_.end(),
                                 [parcel](const Held& h) { return h.parcel == parcel; });
  MXTRAIN_ASSERT(held != held_.end());
  return &*held;
}

HeldKeys::Inbox& HeldKeys::InboxOf(Held* held, int rank, int64_t part) {
  Inboxes& of_rank = held->inboxes[static_cast<size_t>(rank)];
  return part == Exchange::kAllKeys ? of_rank.of_all : of_rank.of_parts.value();
}

const HeldKeys::Memory& HeldKeys::MemoryOf(Held* held, int rank, int64_t part) {
  const Inbox& inbox = InboxOf(held, rank, part);
  return part == Exchange::kAllKeys ? inbox.whole : inbox.parts.at(static_cast<size_t>(part));
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
    for (const Inboxes& of_rank : held.inboxes) {
      runtime_.engine().Drain(of_rank.of_all.arrays.whole.var());
      if (of_rank.of_parts) runtime_.engine().Drain(of_rank.of_parts->arrays.whole.var());
    }
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
  for (Held& held : held_) {
    for (StalenessBound& bound : held.bounds) bound.StartAt(updates);
  }
}

void HeldKeys::BeginRound() {
  MutexLock lock(mutex_);
  ++round_;
  for (Held& held : held_) {
    for (StalenessBound& bound : held.bounds) bound.Begin();
  }
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
    for (StalenessBound& bound : held.bounds) bound.Rest(rank);
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
  for (int r = 0; r < group_->size(); ++r) {
    if (r != group_->rank()) SendNotice(r, notice);
  }
}

void HeldKeys::SendNotice(int rank, const Notice& notice) {
  const auto sent = std::make_shared<Notice>(notice);
  group_->Start({Message::Kind::kSend, rank, kNoticeTag, sent.get(), sizeof *sent},
                [sent](const std::exception_ptr&) {});  // an error has its own ways
}

void HeldKeys::ReceiveNotice(int rank) {
  const auto notice = std::make_shared<Notice>();
  group_->Start({Message::Kind::kReceive, rank, kNoticeTag, notice.get(), sizeof *notice, false},
                [self = shared_from_this(), notice, rank](const std::exception_ptr& error) {
                  if (error) return self->Fail(error);
                  if (notice->parcel >= 0) {
                    self->ReceivePart(self->HeldOf(static_cast<size_t>(notice->parcel)), rank,
                                      notice->part);
                  } else {
                    self->Rest(rank, *notice);
                  }
                  self->ReceiveNotice(rank);
                });
}

void HeldKeys::ReceiveGradient(Held* held, int rank) {
  const Memory& memory = MemoryOf(held, rank, Exchange::kAllKeys);
  group_->Start(
      {Message::Kind::kReceive, rank, GradientTag(held->parcel), memory.data, memory.bytes, false},
      [self = shared_from_this(), held, rank](const std::exception_ptr& error) {
        if (error) return self->Fail(error);
        self->Arrive(held, rank, Exchange::kAllKeys);
      });
}

// On the lane. One that is announced while the answer to the one before leaves waits for that.
void HeldKeys::ReceivePart(Held* held, int rank, int64_t part) {
  Inboxes& of_rank = held->inboxes[static_cast<size_t>(rank)];
  if (of_rank.busy) {
    MXTRAIN_ASSERT(!of_rank.announced);
    of_rank.announced = part;
    return;
  }
  of_rank.busy = true;
  const Memory& memory = MemoryOf(held, rank, part);
  group_->Start(
      {Message::Kind::kReceive, rank, PartTag(held->parcel), memory.data, memory.bytes, false},
      [self = shared_from_this(), held, rank, part](const std::exception_ptr& error) {
        if (error) return self->Fail(error);
        self->Arrive(held, rank, part);
      });
}

void HeldKeys::Arrive(Held* held, int rank, int64_t part) {
  MutexLock lock(mutex_);
  Arrival& arrival = held->arrived.emplace_back(Arrival{rank, part, {}});
  if (part == Exchange::kAllKeys) {
    arrival.left.resize(held->values.size());
    std::iota(arrival.left.begin(), arrival.left.end(), size_t{0});
  } else {
    arrival.left = {static_cast<size_t>(part)};
  }
  Apply(held);
}

// What has arrived, as far as the bounds allow, in the order of arrival. Keys do not wait for each
// other: what has read one of them before all others did need not have read another so.
void HeldKeys::Apply(Held* held) {
  for (auto next = held->arrived.begin(); next != held->arrived.end() && !closed_;) {
    if (!ApplyTo(held, &*next)) {
      ++next;
      continue;
    }
    const auto [rank, part, left] = *next;
    if (left.empty()) {
      held->arrived.erase(next);
      Answer(held, rank, part);
    }
    next = held->arrived.begin();
  }
}

// Updates those of its keys that may be, and have as many updates behind them as the first of them.
bool HeldKeys::ApplyTo(Held* held, Arrival* arrival) {
  const std::vector<int>& keys = parcels_[held->parcel].keys;
  const int rank = arrival->rank;
  const Inbox& inbox = InboxOf(held, rank, arrival->part);
  std::optional<int64_t> before;
  std::vector<size_t> left;
  updates_.clear();
  for (size_t k : arrival->left) {
    StalenessBound& bound = held->bounds[k];
    if (!bound.Admits(rank) || (before && *before != bound.updates())) {
      left.push_back(k);
      continue;
    }
    before = bound.updates();
    ++staleness_[static_cast<size_t>(bound.Apply(rank))];
    updates_.push_back({keys[k], inbox.arrays.parts[k], held->values[k], kPriority});
  }
  if (!before) return false;
  arrival->left = std::move(left);
  updater_(updates_, *before, rank);
  for (const KVStore::KeyUpdate& update : updates_)
    NDArray(update.received).CopyFrom(update.local, kPriority);
  return true;
}

// Once the new values are in the inbox, which nothing else touches until the next gradient arrives.
void HeldKeys::Answer(Held* held, int rank, int64_t part) {
  const engine::VarHandle var = InboxOf(held, rank, part).arrays.whole.var();
  runtime_.engine().PushSync(
      [self = shared_from_this(), held, rank, part,
       unanswered = Unanswered(group_)](RunContext) mutable {
        unanswered.Begun();
        rank == self->group_->rank() ? self->AnswerOwn(held, part) : self->Send(held, rank, part);
      },
      {}, {&var, 1},
      {.property = engine::FnProperty::kComm, .priority = kPriority, .name = "answer"});
}

void HeldKeys::Send(Held* held, int rank, int64_t part) {
  const Memory& memory = MemoryOf(held, rank, part);
  {
    MutexLock lock(own_mutex_);
    ++sending_;
  }
  group_->Start({Message::Kind::kSend, rank, AnswerTag(held->parcel), memory.data, memory.bytes},
                [self = shared_from_this(), held, rank, part](const std::exception_ptr& error) {
                  if (!error && part == Exchange::kAllKeys) self->ReceiveGradient(held, rank);
                  if (!error && part != Exchange::kAllKeys) self->PartSent(held, rank);
                  MutexLock lock(self->own_mutex_);
                  --self->sending_;
                  self->sent_.NotifyAll();
                });
}

void HeldKeys::PartSent(Held* held, int rank) {
  Inboxes& of_rank = held->inboxes[static_cast<size_t>(rank)];
  of_rank.busy = false;
  if (const auto next = std::exchange(of_rank.announced, std::nullopt))
    ReceivePart(held, rank, *next);
}

void HeldKeys::AnswerOwn(Held* held, int64_t part) {
  std::optional<OwnPush> push;
  {
    MutexLock lock(own_mutex_);
    const auto found = own_.find(held->parcel);
    if (found == own_.end()) return;  // it has failed
    push.emplace(std::move(found->second));
    own_.erase(found);
  }
  const Memory& memory = MemoryOf(held, group_->rank(), part);
  std::memcpy(push->memory, memory.data, static_cast<size_t>(memory.bytes));
  push->done();
}

void HeldKeys::Push(const Exchange& exchange, engine::Callback done) {
  const int owner = parcels_[exchange.parcel].owner;
  if (owner != group_->rank()) return SendTo(owner, exchange, std::move(done));
  Held* const held = HeldOf(exchange.parcel);
  std::exception_ptr error;
  {
    MutexLock lock(own_mutex_);
    error = error_;
    if (!error) own_.emplace(exchange.parcel, OwnPush{exchange.memory, std::move(done)});
  }
  if (error) return done(error);
  const Memory& memory = MemoryOf(held, owner, exchange.part);
  std::memcpy(memory.data, exchange.memory, static_cast<size_t>(memory.bytes));
  Arrive(held, owner, exchange.part);
}

void HeldKeys::SendTo(int owner, const Exchange& exchange, engine::Callback done) {
  const size_t parcel = exchange.parcel;
  const bool whole = exchange.part == Exchange::kAllKeys;
  if (!whole) {
    Notice follows;
    follows.parcel = static_cast<int64_t>(parcel);
    follows.part = exchange.part;
    SendNotice(owner, follows);
  }
  const Message gradient{Message::Kind::kSend, owner, whole ? GradientTag(parcel) : PartTag(parcel),
                         exchange.memory, exchange.bytes};
  Message answer = gradient;
  answer.kind = Message::Kind::kReceive;
  answer.tag = AnswerTag(parcel);
  // These own nothing of the runtime, which the lane may survive.
  group_->Start(
      gradient, [group = group_, answer, done = std::move(done)](std::exception_ptr error) mutable {
        if (error) return done(std::move(error));
        group->Start(
            answer, [done = std::move(done)](std::exception_ptr e) mutable { done(std::move(e)); });
      });
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
