// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/process_group.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <utility>

#include "mxtrain/base/clock.h"
#include "mxtrain/base/thread.h"

namespace mxtrain {
namespace {

constexpr double kNanoseconds = 1e9;
// Between two polls, in proportion to the wait so far. A poll costs some microseconds of
// computation, and what has arrived waits for the next one; transports move large data in several
// rounds, each of which waits for a poll.
constexpr int64_t kShortestPause = 10'000, kLongestPause = 500'000;  // nanoseconds
constexpr int64_t kPausesOfWait = 16;

void PauseAfter(int64_t waited_ns) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(
      std::clamp(waited_ns / kPausesOfWait, kShortestPause, kLongestPause)));
}

int64_t BytesOf(const Collective& collective, int ranks) {
  const int64_t parts = collective.kind == Collective::Kind::kAllGather ? ranks : 1;
  return collective.n * SizeOf(collective.type) * parts;
}

// How long a rank waits for the others.
class Patience {
 public:
  Patience(const ProcessGroup::Options& options, const std::atomic<bool>& unhurried)
      : options_(options), unhurried_(unhurried) {}

  // The share of it that a wait since then has used up.
  double Used(int64_t since_ns) {
    const int64_t now = SteadyNanoseconds();
    const auto seconds = [now](int64_t since) {
      return static_cast<double>(now - since) / kNanoseconds;
    };
    const bool stop = options_.stop && *options_.stop == 1 && !unhurried_;
    if (!stop || stop_seen_ns_ == 0) stop_seen_ns_ = stop ? now : 0;
    waited_ = seconds(since_ns);
    const double used = waited_ / options_.timeout_seconds;
    if (!stop) return used;
    const double stopping = seconds(std::max(stop_seen_ns_, since_ns)) / options_.stop_seconds;
    return std::max(used, stopping);
  }

  // Once all of it is used up.
  std::string Text(const std::string& who) const {
    return waited_ >= options_.timeout_seconds
               ? format("{} waited {:.0f} s for the other ranks (train.kvstore.timeout)", who,
                        waited_)
               : format(
                     "{} was asked to end, waited {:.0f} s for the other ranks and saves nothing",
                     who, options_.stop_seconds);
  }

 private:
  const ProcessGroup::Options& options_;
  const std::atomic<bool>& unhurried_;  // a wish to stop has been granted
  double waited_ = 0;
  int64_t stop_seen_ns_ = 0;  // since when options_.stop asks for the end; 0: it does not
};

// Who has not told that it waits for this collective too.
std::string Missing(const std::vector<int64_t>& heard, int64_t id, int own_rank) {
  constexpr size_t kMostNamed = 8;
  std::vector<std::string> names;
  for (int r = 0; r < static_cast<int>(heard.size()); ++r) {
    if (r != own_rank && heard[static_cast<size_t>(r)] < id) names.push_back(std::to_string(r));
  }
  if (names.empty()) return "they wait too, so messages are lost between them";
  if (names.size() == 1) return format("rank {} ended or does not answer", names[0]);
  const size_t more = names.size() - std::min(names.size(), kMostNamed);
  names.resize(names.size() - more);
  std::string list = names[0];
  for (size_t i = 1; i < names.size(); ++i)
    list += (i + 1 < names.size() || more > 0 ? ", " : " and ") + names[i];
  if (more > 0) list += format(" and {} more", more);
  return format("ranks {} ended or do not answer", list);
}

}  // namespace

ProcessGroup::ProcessGroup(std::function<std::unique_ptr<Transport>()> open, const Options& options)
    : options_(options) {
  // What the lane touches if it is left behind in `open`.
  struct Opening {
    std::promise<void> done;
    std::atomic_flag decided;  // by whoever sets it first: the lane serves the group, or is left
  };
  const auto opening = std::make_shared<Opening>();
  std::future<void> opened = opening->done.get_future();
  lane_ = StartThread([this, opening, open = std::move(open)] {
    std::unique_ptr<Transport> transport;
    try {
      transport = open();
      if (opening->decided.test_and_set()) return;
      rank_ = transport->rank();
      size_ = transport->size();
      transport_name_ = transport->Describe();
    } catch (...) {
      return opening->done.set_exception(std::current_exception());
    }
    opening->done.set_value();
    Serve(*transport);
  });
  Patience patience(options_, closing_);
  const int64_t begin = SteadyNanoseconds();
  while (opened.wait_for(std::chrono::nanoseconds(kLongestPause)) == std::future_status::timeout) {
    if (patience.Used(begin) < 1 || opening->decided.test_and_set()) continue;
    lane_.detach();
    Throw(kRankLost, "{}: one of them ended or does not answer", patience.Text("this process"));
  }
  try {
    opened.get();
  } catch (...) {
    lane_.join();
    throw;
  }
}

ProcessGroup::~ProcessGroup() {
  Leave(End::kLeave, 0);
}

void ProcessGroup::Close() {
  closing_ = true;
  // What ends the transport on all ranks has no deadline of its own.
  if (!failed()) Barrier();
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

ProcessGroup::Place::Place(Place&& other) noexcept
    : group_(std::exchange(other.group_, nullptr)), number_(other.number_) {}

ProcessGroup::Place::~Place() {
  if (group_) group_->Fail("this rank could not compute what it was to send to the others");
}

ProcessGroup::Place ProcessGroup::Reserve() {
  MutexLock lock(mutex_);
  return Place(this, reserved_++);
}

void ProcessGroup::Start(Place place, const Collective& collective, Done done) {
  place.group_ = nullptr;
  std::exception_ptr error;
  {
    MutexLock lock(mutex_);
    error = error_;
    if (!error) {
      started_.emplace(place.number_, Started{collective, std::move(done)});
      return changed_.NotifyAll();
    }
  }
  done(error);
}

void ProcessGroup::Start(const Message& message, Done done) {
  std::exception_ptr error;
  {
    MutexLock lock(mutex_);
    error = error_;
    if (!error) {
      messages_.emplace_back(message, std::move(done));
      return changed_.NotifyAll();
    }
  }
  done(error);
}

void ProcessGroup::DropReceives() {
  MutexLock lock(mutex_);
  drops_receives_ = true;
  changed_.NotifyAll();
  while (drops_receives_ && !lane_ended_) changed_.Wait(lock);
}

void ProcessGroup::Rest(bool rests) {
  rests_since_ns_ = rests ? SteadyNanoseconds() : 0;
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

int64_t ProcessGroup::NextPlace() const {
  MutexLock lock(mutex_);
  return next_;
}

bool ProcessGroup::failed() const {
  MutexLock lock(mutex_);
  return error_ != nullptr;
}

double ProcessGroup::SecondsOfWait() const {
  const bool stop = options_.stop && *options_.stop == 1;
  return stop ? std::min(options_.stop_seconds, options_.timeout_seconds)
              : options_.timeout_seconds;
}

ProcessGroup::Stats ProcessGroup::stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

// The collectives that can begin, in the order of their places, and the messages. False: the lane
// ends.
bool ProcessGroup::TakeStarted(Ready* ready) {
  MutexLock lock(mutex_);
  if (end_ != End::kNone || error_) return false;
  for (auto first = started_.begin(); first != started_.end() && first->first == next_;
       first = started_.erase(first), ++next_)
    ready->collectives.emplace_back(first->first, std::move(first->second));
  ready->messages.swap(messages_);
  ready->drops_receives = drops_receives_;
  return true;
}

void ProcessGroup::FailAll(Transport& transport, const std::exception_ptr& error,
                           Flights* flights) {
  std::map<int64_t, Started> never;
  std::vector<std::pair<Message, Done>> unsent;
  {
    MutexLock lock(mutex_);
    if (!error_) error_ = error;
    never.swap(started_);
    unsent.swap(messages_);
  }
  if (!flights->empty()) transport.Abandon();
  for (auto& [id, flight] : *flights) flight.done(error);
  flights->clear();
  for (auto& [place, started] : never) started.done(error);
  for (auto& [message, done] : unsent) done(error);
}

void ProcessGroup::Begin(Transport& transport, Ready* ready, Flights* flights) {
  const int64_t now = SteadyNanoseconds();
  // All of them are known before the first begins: if one fails, all do.
  for (auto& [place, started] : ready->collectives)
    flights->emplace(place, Flight{std::move(started.done), now});
  const int64_t first = next_message_;
  for (auto& [message, done] : ready->messages)
    flights->emplace(next_message_++, Flight{std::move(done), now, message.awaited});
  Stats begun;
  for (const auto& [place, started] : ready->collectives) {
    transport.Begin(started.collective, place);
    ++begun.collectives;
    begun.bytes += BytesOf(started.collective, size_);
  }
  for (size_t i = 0; i < ready->messages.size(); ++i) {
    const Message& message = ready->messages[i].first;
    transport.Begin(message, first + static_cast<int64_t>(i));
    if (message.kind == Message::Kind::kSend) begun.bytes += message.bytes;
  }
  ready->collectives.clear();
  ready->messages.clear();
  MutexLock lock(mutex_);
  stats_.collectives += begun.collectives;
  stats_.bytes += begun.bytes;
}

void ProcessGroup::Drop(Transport& transport, Flights* flights) {
  for (auto flight = flights->begin(); flight != flights->end();) {
    if (flight->second.awaited) {
      ++flight;
      continue;
    }
    transport.Cancel(flight->first);
    flight = flights->erase(flight);
  }
}

void ProcessGroup::Serve(Transport& transport) {
  Flights flights;
  Ready ready;
  std::vector<int64_t> completed;
  int64_t busy_since = 0, progress = 0;  // times
  RunPromptly();
  Patience patience(options_, closing_);
  int64_t told = -1;
  const auto collective_flies = [&flights] {
    return !flights.empty() && flights.begin()->first < kFirstMessage;
  };
  try {
    while (TakeStarted(&ready)) {
      const int64_t now = SteadyNanoseconds();
      if (!collective_flies()) busy_since = now;
      if (!ready.empty()) progress = now;
      Begin(transport, &ready, &flights);
      if (std::exchange(ready.drops_receives, false)) {
        Drop(transport, &flights);
        MutexLock lock(mutex_);
        drops_receives_ = false;
        changed_.NotifyAll();
      }
      if (flights.empty()) {
        MutexLock lock(mutex_);
        // Until the next collective or message can begin, or the end.
        while (end_ == End::kNone && !error_ && messages_.empty() && !drops_receives_ &&
               (started_.empty() || started_.begin()->first != next_))
          changed_.Wait(lock);
        continue;
      }
      transport.Poll(&completed);
      bool of_collectives = false;
      for (int64_t id : completed) {
        const auto flight = flights.find(id);
        MXTRAIN_ASSERT(flight != flights.end());
        of_collectives |= id < kFirstMessage;
        flight->second.done(nullptr);
        flights.erase(flight);
      }
      if (!completed.empty()) progress = SteadyNanoseconds();
      if (of_collectives) {
        const int64_t then = std::exchange(busy_since, progress);
        MutexLock lock(mutex_);
        stats_.seconds += static_cast<double>(busy_since - then) / kNanoseconds;
      }
      if (!completed.empty()) {
        completed.clear();
        continue;
      }
      const auto oldest = std::find_if(flights.begin(), flights.end(),
                                       [](const auto& flight) { return flight.second.awaited; });
      const int64_t waits_since =
          oldest != flights.end() ? oldest->second.begin_ns : rests_since_ns_.load();
      if (waits_since > 0) {
        const double used = patience.Used(std::max(waits_since, progress));
        // A rank that rests or waits for a message takes part in no collective before the next one.
        const int64_t waits_for = collective_flies() ? oldest->first : NextPlace();
        if (used >= 1) {
          Throw(kRankLost, "{}: {}", patience.Text(format("rank {}", rank_)),
                Missing(transport.Heard(), waits_for, rank_));
        }
        // Those that wait as well have told so by then.
        if (used > 0.5 && told != waits_for) transport.Tell(told = waits_for);
      }
      PauseAfter(now - progress);
    }
  } catch (...) {
    FailAll(transport, std::current_exception(), &flights);
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
  const bool awaits = std::any_of(flights.begin(), flights.end(),
                                  [](const auto& flight) { return flight.second.awaited; });
  if (awaits || failed()) FailAll(transport, error, &flights);
  try {
    Drop(transport, &flights);
  } catch (...) {
    FailAll(transport, std::current_exception(), &flights);
  }
  int exit_code = 0;
  {
    MutexLock lock(mutex_);
    lane_ended_ = true;
    changed_.NotifyAll();
    while (end_ == End::kNone) changed_.Wait(lock);
    end = end_;
    exit_code = exit_code_;
  }
  try {
    if (end == End::kClose && !failed()) transport.Close();
    if (end == End::kAbort) transport.Abort(exit_code);
  } catch (...) {
    FailAll(transport, std::current_exception(), &flights);
  }
}

}  // namespace mxtrain
