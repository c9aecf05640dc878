// SPDX-License-Identifier: Apache-2.0
#include "tests/support/thread_ranks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "mxtrain/base/clock.h"
#include "mxtrain/base/dtype.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"

namespace mxtrain::test {

// The k-th collective that each rank begins is one meeting of all.
struct ThreadRanks::State {
  struct Meeting {
    std::vector<std::optional<Collective>> parts;  // of each rank
    int arrived = 0, left = 0;
    bool done = false;
  };
  explicit State(int ranks)
      : size(ranks), lost(static_cast<size_t>(ranks)), told(static_cast<size_t>(ranks), -1) {}

  const int size;
  Mutex mutex;
  std::map<int64_t, Meeting> meetings MXTRAIN_GUARDED_BY(mutex);
  // Messages that were sent and not received, by sender, receiver and tag.
  std::map<std::array<int, 3>, std::deque<std::string>> messages MXTRAIN_GUARDED_BY(mutex);
  std::vector<bool> lost MXTRAIN_GUARDED_BY(mutex);
  std::vector<int64_t> told MXTRAIN_GUARDED_BY(mutex);
  int aborted MXTRAIN_GUARDED_BY(mutex) = 0;
};

namespace {

using State = ThreadRanks::State;
using Kind = Collective::Kind;

template <typename T, typename Sum = T>
void Reduce(const std::vector<Collective>& parts) {
  const bool max = parts[0].reduction == Collective::Reduction::kMax;
  for (int64_t i = 0; i < parts[0].n; ++i) {
    T result = static_cast<const T*>(parts[0].data)[i];
    for (size_t r = 1; r < parts.size(); ++r) {
      const T value = static_cast<const T*>(parts[r].data)[i];
      const auto a = static_cast<Sum>(result), b = static_cast<Sum>(value);
      result = static_cast<T>(max ? std::max(a, b) : a + b);
    }
    for (const Collective& part : parts) static_cast<T*>(part.data)[i] = result;
  }
}

void AllReduce(const std::vector<Collective>& parts) {
  switch (parts[0].type) {
    case DType::kFloat32:
      return Reduce<float>(parts);
    case DType::kFloat64:
      return Reduce<double>(parts);
    case DType::kBfloat16:
      return Reduce<bfloat16, float>(parts);
    case DType::kInt32:
      return Reduce<int32_t>(parts);
    case DType::kInt64:
      return Reduce<int64_t>(parts);
    default:
      return Reduce<uint8_t, int>(parts);
  }
}

// Ranks that begin different collectives are a bug of the program, which MPI would answer with
// garbage.
void RequireEqual(const std::vector<Collective>& parts) {
  for (const Collective& part : parts) {
    MXTRAIN_ASSERT(part.kind == parts[0].kind && part.n == parts[0].n &&
                   part.type == parts[0].type && part.reduction == parts[0].reduction &&
                   part.root == parts[0].root);
  }
}

void Carry(const std::vector<Collective>& parts) {
  RequireEqual(parts);
  const auto bytes = static_cast<size_t>(parts[0].n * SizeOf(parts[0].type));
  const auto at = [bytes](void* data, size_t part) {
    return static_cast<char*>(data) + bytes * part;
  };
  switch (parts[0].kind) {
    case Kind::kAllReduce:
      return AllReduce(parts);
    case Kind::kBroadcast: {
      const void* const from = parts[static_cast<size_t>(parts[0].root)].data;
      for (const Collective& part : parts) {
        if (part.data != from) std::memcpy(part.data, from, bytes);
      }
      return;
    }
    case Kind::kAllGather:
      for (size_t from = 0; from < parts.size(); ++from) {
        for (size_t to = 0; to < parts.size(); ++to) {
          if (to != from) std::memcpy(at(parts[to].data, from), at(parts[from].data, from), bytes);
        }
      }
  }
}

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<State> state, int rank) : state_(std::move(state)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return state_->size; }
  std::string Describe() const override { return "threads"; }

  void Begin(const Collective& collective, int64_t id) override {
    RequireOneThread();
    MutexLock lock(state_->mutex);
    if (state_->lost[static_cast<size_t>(rank_)]) return;
    State::Meeting& meeting = state_->meetings[begun_];
    meeting.parts.resize(static_cast<size_t>(state_->size));
    meeting.parts[static_cast<size_t>(rank_)] = collective;
    waiting_.emplace_back(begun_++, id);
    if (++meeting.arrived < state_->size) return;
    std::vector<Collective> parts;
    for (const auto& part : meeting.parts) parts.push_back(*part);
    Carry(parts);
    meeting.done = true;
  }

  // A message is copied when it is sent.
  void Begin(const Message& m, int64_t id) override {
    RequireOneThread();
    MutexLock lock(state_->mutex);
    if (state_->lost[static_cast<size_t>(rank_)]) return;
    MXTRAIN_ASSERT(m.peer != rank_ && m.peer < state_->size);
    if (m.kind == Message::Kind::kReceive) return receives_.emplace_back(m, id), void();
    state_->messages[{rank_, m.peer, m.tag}].emplace_back(static_cast<const char*>(m.data),
                                                          static_cast<size_t>(m.bytes));
    sent_.push_back(id);
  }

  void Poll(std::vector<int64_t>* completed) override {
    RequireOneThread();
    MutexLock lock(state_->mutex);
    completed->insert(completed->end(), sent_.begin(), sent_.end());
    sent_.clear();
    for (auto it = receives_.begin(); it != receives_.end();) {
      const Message& m = it->first;
      std::deque<std::string>& there = state_->messages[{m.peer, rank_, m.tag}];
      if (there.empty()) {
        ++it;
        continue;
      }
      MXTRAIN_ASSERT(std::ssize(there.front()) == m.bytes);
      std::memcpy(m.data, there.front().data(), there.front().size());
      there.pop_front();
      completed->push_back(it->second);
      it = receives_.erase(it);
    }
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      const auto meeting = state_->meetings.find(it->first);
      if (!meeting->second.done) {
        ++it;
        continue;
      }
      completed->push_back(it->second);
      if (++meeting->second.left == state_->size) state_->meetings.erase(meeting);
      it = waiting_.erase(it);
    }
  }

  void Tell(int64_t id) override {
    MutexLock lock(state_->mutex);
    if (!state_->lost[static_cast<size_t>(rank_)]) state_->told[static_cast<size_t>(rank_)] = id;
  }
  std::vector<int64_t> Heard() override {
    MutexLock lock(state_->mutex);
    return state_->told;
  }
  void Cancel(int64_t id) override {
    std::erase_if(receives_, [id](const auto& receive) { return receive.second == id; });
  }
  void Abandon() override {
    MutexLock lock(state_->mutex);
    for (const auto& [number, id] : waiting_) {
      State::Meeting& meeting = state_->meetings.at(number);
      if (!meeting.done) --meeting.arrived;  // never all, from now on
    }
    waiting_.clear();
    receives_.clear();
  }
  void Close() override { MXTRAIN_ASSERT(waiting_.empty() && receives_.empty()); }
  void Abort(int exit_code) override {
    MutexLock lock(state_->mutex);
    state_->aborted = exit_code;
  }

 private:
  void RequireOneThread() {
    if (thread_ == std::thread::id()) thread_ = std::this_thread::get_id();
    MXTRAIN_ASSERT(thread_ == std::this_thread::get_id());
  }

  const std::shared_ptr<State> state_;
  const int rank_;
  std::thread::id thread_;
  int64_t begun_ = 0;
  std::deque<std::pair<int64_t, int64_t>> waiting_;  // meeting, id
  std::deque<std::pair<Message, int64_t>> receives_;
  std::vector<int64_t> sent_;  // ids
};

class DelayedTransport final : public Transport {
 public:
  DelayedTransport(std::unique_ptr<Transport> transport, const Link& link)
      : transport_(std::move(transport)), link_(link) {}

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  std::string Describe() const override { return transport_->Describe() + ", delayed"; }
  void Begin(const Collective& c, int64_t id) override {
    bytes_[id] = c.n * SizeOf(c.type);
    transport_->Begin(c, id);
  }
  // A message takes its time where it is received.
  void Begin(const Message& m, int64_t id) override {
    if (m.kind == Message::Kind::kReceive) message_bytes_[id] = m.bytes;
    transport_->Begin(m, id);
  }
  // A ring moves 2 (R - 1) / R of the bytes over every link.
  void Poll(std::vector<int64_t>* completed) override {
    std::vector<int64_t> done;
    transport_->Poll(&done);
    const int64_t now = SteadyNanoseconds();
    for (int64_t id : done) {
      const auto collective = bytes_.find(id), message = message_bytes_.find(id);
      double bytes = 0;
      if (collective != bytes_.end()) {
        bytes = 2.0 * (size() - 1) / size() * static_cast<double>(collective->second);
        bytes_.erase(collective);
      } else if (message != message_bytes_.end()) {
        bytes = static_cast<double>(message->second);
        message_bytes_.erase(message);
      } else {  // a message was sent
        completed->push_back(id);
        continue;
      }
      double seconds = link_.latency_seconds;
      if (link_.bytes_per_second > 0) seconds += bytes / link_.bytes_per_second;
      free_at_ = std::max(free_at_, now) + static_cast<int64_t>(seconds * 1e9);
      travelling_.emplace_back(free_at_, id);
    }
    while (!travelling_.empty() && travelling_.front().first <= now) {
      completed->push_back(travelling_.front().second);
      travelling_.pop_front();
    }
  }
  void Tell(int64_t id) override { transport_->Tell(id); }
  std::vector<int64_t> Heard() override { return transport_->Heard(); }
  void Cancel(int64_t id) override {
    transport_->Cancel(id);
    message_bytes_.erase(id);
    std::erase_if(travelling_, [id](const auto& arrival) { return arrival.second == id; });
  }
  void Abandon() override { transport_->Abandon(); }
  void Close() override { transport_->Close(); }
  void Abort(int exit_code) override { transport_->Abort(exit_code); }

 private:
  const std::unique_ptr<Transport> transport_;
  const Link link_;
  std::map<int64_t, int64_t> bytes_, message_bytes_;    // of collectives and receives in flight
  int64_t free_at_ = 0;                                 // when the link is free
  std::deque<std::pair<int64_t, int64_t>> travelling_;  // arrival, id
};

}  // namespace

ThreadRanks::ThreadRanks(int size) : state_(std::make_shared<State>(size)) {}
ThreadRanks::~ThreadRanks() = default;

std::function<std::unique_ptr<Transport>()> ThreadRanks::Opener(int rank) {
  return [state = state_, rank] { return std::make_unique<ThreadTransport>(state, rank); };
}

void ThreadRanks::Lose(int rank) {
  MutexLock lock(state_->mutex);
  state_->lost[static_cast<size_t>(rank)] = true;
}

int ThreadRanks::aborted_with() const {
  MutexLock lock(state_->mutex);
  return state_->aborted;
}

void RunRanks(int size, const std::function<void(const std::shared_ptr<ProcessGroup>&)>& body,
              const ProcessGroup::Options& options) {
  ThreadRanks ranks(size);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      const auto group = std::make_shared<ProcessGroup>(ranks.Opener(r), options);
      try {
        body(group);
        group->Close();
      } catch (...) {
        errors[static_cast<size_t>(r)] = std::current_exception();
        group->Fail("a rank of the test ended");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

std::vector<std::string> ErrorsOf(
    int size, const std::function<void(const std::shared_ptr<ProcessGroup>&)>& body,
    const ProcessGroup::Options& options) {
  std::vector<std::string> errors(static_cast<size_t>(size));
  const auto kept = [&](const std::shared_ptr<ProcessGroup>& group) {
    try {
      body(group);
    } catch (const Error& e) {
      errors[static_cast<size_t>(group->rank())] =
          format("{}: {}", static_cast<int>(e.kind()), e.what());
    }
  };
  try {
    RunRanks(size, kept, options);
  } catch (const Error& e) {  // a group that failed cannot be closed
    if (e.kind() != kRankLost) throw;
  }
  return errors;
}

std::unique_ptr<Transport> Delayed(std::unique_ptr<Transport> transport, const Link& link) {
  return std::make_unique<DelayedTransport>(std::move(transport), link);
}

}  // namespace mxtrain::test
