// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/process_group.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "mxtrain/base/clock.h"
#include "mxtrain/base/thread.h"

namespace mxtrain {
namespace {

constexpr double kNanoseconds = 1e9;
// Between two polls. A poll costs about a microsecond and a switch of threads, which computation
// loses; transports move large data in several rounds, each of which waits for a poll.
constexpr std::chrono::microseconds kShortestPause{10}, kLongestPause{500};

int64_t BytesOf(const Collective& collective, int ranks) {
  const int64_t parts = collective.kind == Collective::Kind::kAllGather ? ranks : 1;
  return collective.n * SizeOf(collective.type) * parts;
}

}  // namespace

ProcessGroup::ProcessGroup(std::function<std::unique_ptr<Transport>()> open, const Options& options)
    : options_(options) {
  lane_ = StartThread([this, open = std::move(open)] { Work(open); });
  std::exception_ptr error;
  {
    MutexLock lock(mutex_);
    while (!open_ && !error_) changed_.Wait(lock);
    error = error_;
  }
  if (!error) return;
  lane_.join();
  std::rethrow_exception(error);
}

ProcessGroup::~ProcessGroup() {
  Leave(End::kLeave, 0);
}

void ProcessGroup::Close() {
  Leave(End::kClose, 0);
  MutexLock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

void ProcessGroup::Abort(int exit_code) {
  Leave(End::kAbort, exit_code);
}

void ProcessGroup::Leave(End end, int exit_code) {
  if (!lane_.joinable()) return;
  {
    MutexLock lock(mutex_);
    end_ = end;
    exit_code_ = exit_code;
  }
  changed_.NotifyAll();
  lane_.join();
}

int64_t ProcessGroup::Reserve() {
  MutexLock lock(mutex_);
  return reserved_++;
}

void ProcessGroup::Start(int64_t place, const Collective& collective, Done done) {
  std::exception_ptr error;
  {
    MutexLock lock(mutex_);
    error = error_;
    if (!error) started_.emplace(place, Started{collective, std::move(done)});
  }
  if (error) return done(error);
  changed_.NotifyAll();
}

void ProcessGroup::Run(const Collective& collective) {
  struct Wait {
    Mutex mutex;
    ConditionVariable changed;
    bool done MXTRAIN_GUARDED_BY(mutex) = false;
    std::exception_ptr error MXTRAIN_GUARDED_BY(mutex);
  } wait;
  Start(Reserve(), collective, [&wait](std::exception_ptr error) {
    MutexLock lock(wait.mutex);
    wait.done = true;
    wait.error = std::move(error);
    wait.changed.NotifyAll();  // with the lock: `wait` ends once it is released
  });
  MutexLock lock(wait.mutex);
  while (!wait.done) wait.changed.Wait(lock);
  if (wait.error) std::rethrow_exception(wait.error);
}

void ProcessGroup::Barrier() {
  int32_t nothing = 0;
  Run({.kind = Collective::Kind::kAllReduce, .data = &nothing, .n = 1, .type = DType::kInt32});
}

std::vector<std::string> ProcessGroup::GatherText(const std::string& own) {
  auto most = static_cast<int64_t>(own.size());
  Run({.data = &most, .n = 1, .type = DType::kInt64, .reduction = Collective::Reduction::kMax});
  // Each part: the length, then the text, padded.
  const auto part = static_cast<size_t>(most) + sizeof(int64_t);
  std::vector<char> parts(part * static_cast<size_t>(size_));
  const auto length = static_cast<int64_t>(own.size());
  char* const mine = parts.data() + part * static_cast<size_t>(rank_);
  std::memcpy(mine, &length, sizeof length);
  std::memcpy(mine + sizeof length, own.data(), own.size());
  Run({.kind = Collective::Kind::kAllGather,
       .data = parts.data(),
       .n = static_cast<int64_t>(part),
       .type = DType::kUint8});
  std::vector<std::string> texts;
  for (int r = 0; r < size_; ++r) {
    const char* const at = parts.data() + part * static_cast<size_t>(r);
    int64_t its_length = 0;
    std::memcpy(&its_length, at, sizeof its_length);
    MXTRAIN_ASSERT(its_length >= 0 && its_length <= most);
    texts.emplace_back(at + sizeof its_length, static_cast<size_t>(its_length));
  }
  return texts;
}

std::string ProcessGroup::BroadcastText(const std::string& of_first) {
  auto length = static_cast<int64_t>(of_first.size());
  Run({.kind = Collective::Kind::kBroadcast, .data = &length, .n = 1, .type = DType::kInt64});
  std::string text = of_first;
  text.resize(static_cast<size_t>(length));
  Run({.kind = Collective::Kind::kBroadcast,
       .data = text.data(),
       .n = length,
       .type = DType::kUint8});
  return text;
}

void ProcessGroup::Fail(const std::string& text) {
  {
    MutexLock lock(mutex_);
    if (!error_) error_ = std::make_exception_ptr(Error(kRankLost, text));
  }
  changed_.NotifyAll();
}

bool ProcessGroup::failed() const {
  MutexLock lock(mutex_);
  return error_ != nullptr;
}

ProcessGroup::Stats ProcessGroup::stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

void ProcessGroup::Work(const std::function<std::unique_ptr<Transport>()>& open) {
  std::unique_ptr<Transport> transport;
  try {
    transport = open();
    rank_ = transport->rank();
    size_ = transport->size();
    transport_name_ = transport->Describe();
  } catch (...) {
    MutexLock lock(mutex_);
    error_ = std::current_exception();
    changed_.NotifyAll();
    return;
  }
  {
    MutexLock lock(mutex_);
    open_ = true;
  }
  changed_.NotifyAll();
  Serve(*transport);
}

// The collectives that can begin, in the order of their places. False: the lane ends.
bool ProcessGroup::TakeStarted(std::vector<std::pair<int64_t, Started>>* ready) {
  MutexLock lock(mutex_);
  if (end_ != End::kNone || error_) return false;
  for (auto first = started_.begin(); first != started_.end() && first->first == next_;
       first = started_.erase(first), ++next_)
    ready->emplace_back(first->first, std::move(first->second));
  return true;
}

// The error of a collective that takes too long, or null.
std::exception_ptr ProcessGroup::Overdue(const std::map<int64_t, Flight>& flights) const {
  if (flights.empty()) return nullptr;
  const int64_t now = SteadyNanoseconds(), oldest = flights.begin()->second.begin_ns;
  const double waited = static_cast<double>(now - oldest) / kNanoseconds;
  std::string why;
  if (waited > options_.timeout_seconds) {
    why = format(
        "rank {} waited {:.0f} s for the other ranks (train.kvstore.timeout): one of them "
        "ended or does not answer",
        rank_, waited);
  } else if (stop_seen_ns_ > 0 &&
             static_cast<double>(now - std::max(stop_seen_ns_, oldest)) / kNanoseconds >
                 options_.stop_seconds) {
    why = format(
        "rank {} was asked to end and waited {:.0f} s for the other ranks, which do not "
        "answer: nothing is saved",
        rank_, options_.stop_seconds);
  }
  return why.empty() ? nullptr : std::make_exception_ptr(Error(kRankLost, why));
}

void ProcessGroup::FailAll(const std::exception_ptr& error, std::map<int64_t, Flight>* flights) {
  std::map<int64_t, Started> never;
  {
    MutexLock lock(mutex_);
    if (!error_) error_ = error;
    never.swap(started_);
  }
  for (auto& [id, flight] : *flights) flight.done(error);
  flights->clear();
  for (auto& [place, started] : never) started.done(error);
}

void ProcessGroup::Serve(Transport& transport) {
  std::map<int64_t, Flight> flights;
  std::vector<std::pair<int64_t, Started>> ready;
  std::vector<int64_t> completed;
  std::chrono::microseconds pause = kShortestPause;
  int64_t busy_since = 0;
  try {
    while (TakeStarted(&ready)) {
      const int64_t now = SteadyNanoseconds();
      const bool stop = options_.stop && *options_.stop == 1;
      if (!stop || stop_seen_ns_ == 0) stop_seen_ns_ = stop ? now : 0;
      if (flights.empty()) busy_since = now;
      if (!ready.empty()) pause = kShortestPause;
      // All of them are known before the first begins: if one fails, all do.
      for (auto& [place, started] : ready)
        flights.emplace(place, Flight{std::move(started.done), now});
      for (const auto& [place, started] : ready) {
        const int64_t bytes = BytesOf(started.collective, size_);
        transport.Begin(started.collective, place);
        MutexLock lock(mutex_);
        ++stats_.collectives;
        stats_.bytes += bytes;
      }
      ready.clear();
      if (flights.empty()) {
        MutexLock lock(mutex_);
        // Until the next collective can begin, or the end.
        while (end_ == End::kNone && !error_ &&
               (started_.empty() || started_.begin()->first != next_))
          changed_.Wait(lock);
        continue;
      }
      transport.Poll(&completed);
      for (int64_t id : completed) {
        const auto flight = flights.find(id);
        MXTRAIN_ASSERT(flight != flights.end());
        flight->second.done(nullptr);
        flights.erase(flight);
        pause = kShortestPause;
      }
      if (!completed.empty() && flights.empty()) {
        MutexLock lock(mutex_);
        stats_.seconds += static_cast<double>(SteadyNanoseconds() - busy_since) / kNanoseconds;
      }
      const bool progressed = !completed.empty();
      completed.clear();
      if (progressed) continue;
      if (const std::exception_ptr late = Overdue(flights)) std::rethrow_exception(late);
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, kLongestPause);
    }
  } catch (...) {
    FailAll(std::current_exception(), &flights);
  }
  End end = End::kNone;
  std::exception_ptr error;
  {
    // A failure is told to the callbacks at once; the end comes when the owner says how.
    MutexLock lock(mutex_);
    error = error_ ? error_
                   : std::make_exception_ptr(
                         Error(kRankLost, "the group of processes was left with work in flight"));
  }
  if (!flights.empty() || failed()) FailAll(error, &flights);
  int exit_code = 0;
  {
    MutexLock lock(mutex_);
    while (end_ == End::kNone) changed_.Wait(lock);
    end = end_;
    exit_code = exit_code_;
  }
  try {
    if (end == End::kClose && !failed()) transport.Close();
    if (end == End::kAbort) transport.Abort(exit_code);
  } catch (...) {
    FailAll(std::current_exception(), &flights);
  }
}

}  // namespace mxtrain
