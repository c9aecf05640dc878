// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives and messages between the processes (ranks) of a distributed run.
//
// One thread of the group, its lane, makes every call of the transport: MPI is initialized there
// with MPI_THREAD_FUNNELED. Collectives do not block it: several are in flight, and it polls them
// against a deadline, so a rank that is gone is noticed.
//
// Every rank must start the same collectives in the same order, but data become ready in an order
// of their own on each rank. So a collective is reserved where the order is known, in the thread
// that drives the run, and started by whoever has its data; the lane begins them in the order of
// the reservations.
//
// Messages between two ranks have no part in that order: they begin as they are given to the group.
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "mxtrain/base/dtype.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/mutex.h"
#include "mxtrain/base/unique_function.h"

namespace mxtrain {

// Another process of the run ended or does not answer; also the program's exit code.
inline constexpr ErrorKind kRankLost{10};

// The memory stays valid until the collective is done. Elements are float32, float64, int32 or
// int64; bfloat16 (summed in float32, rounded at each addition; no maximum) or 8-bit (not reduced).
struct Collective {
  enum class Kind : uint8_t {
    kAllReduce,  // replaces data by the sum or maximum over the ranks: the same bits on all ranks
    kBroadcast,  // copies one rank's data to all
    kAllGather,  // data: one part per rank, each of n elements; each rank provides its own
  };
  enum class Reduction : uint8_t { kSum, kMax };
  Kind kind = Kind::kAllReduce;
  void* data = nullptr;
  int64_t n = 0;
  DType type = DType::kFloat32;
  Reduction reduction = Reduction::kSum;
  int root = 0;  // of a broadcast
};

// From one rank to another, which receives as many bytes with the same tag. Those of one tag arrive
// in the order in which they were sent. The memory stays valid until the message is done.
struct Message {
  enum class Kind : uint8_t { kSend, kReceive };
  Kind kind = Kind::kSend;
  int peer = 0;  // another rank
  int tag = 0;   // from 0 to 30000, which every MPI has
  void* data = nullptr;
  int64_t bytes = 0;
  // Whether the other rank is known to take part: it has as long as a collective may take. A
  // receive that is not awaited may stay in flight, and be dropped.
  bool awaited = true;
};

// How collectives and messages travel. All calls come from one thread. Ranks begin the same
// collectives in the same order. Failures are Errors, of kind kRankLost where a rank seems to be
// gone.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string Describe() const = 0;  // "Open MPI 4.1.4"
  // Begins a collective without waiting for other ranks.
  virtual void Begin(const Collective& collective, int64_t id) = 0;
  virtual void Begin(const Message& message, int64_t id) = 0;
  // Makes progress, without waiting; appends the ids of what has completed since the last call.
  virtual void Poll(std::vector<int64_t>* completed) = 0;
  // For a rank that has waited for long. Tell: all others learn which collective it waits for,
  // without waiting for them. Heard: what each rank told last, by rank; -1: nothing.
  virtual void Tell(int64_t id) = 0;
  virtual std::vector<int64_t> Heard() = 0;
  // Of a receive in flight: it touches its memory no more.
  virtual void Cancel(int64_t id) = 0;
  // This rank has failed, and frees the memory of what is in flight; Abort may follow. What can be
  // withdrawn from the others is: MPI cannot, and may read or write until Abort ends the process.
  virtual void Abandon() = 0;
  // Either of them is the last call. Close: all ranks call it, with nothing in flight. Abort: ends
  // all ranks, this one too, if it can.
  virtual void Close() = 0;
  virtual void Abort(int exit_code) = 0;
};

class MXTRAIN_API ProcessGroup {
 public:
  struct Options {
    // How long a collective may take, with its wait for other ranks.
    double timeout_seconds = 600;
    // While it is 1 (a signal asks the process to end), collectives get only so much longer: enough
    // for rank 0 to finish a save.
    const std::atomic<int>* stop = nullptr;
    double stop_seconds = 60;
  };
  using Done = UniqueFunction<void(std::exception_ptr)>;

  // Calls `open` on the lane. Throws its errors, and kRankLost if it takes longer than the timeout:
  // MPI waits there for all processes, and for good if one never comes. The lane then stays in
  // `open`, and the process should end without destructors (std::_Exit).
  ProcessGroup(std::function<std::unique_ptr<Transport>()> open, const Options& options);
  // Neither closed nor aborted: ends the lane without telling other ranks.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool first() const { return rank_ == 0; }
  const std::string& transport() const { return transport_name_; }
  double timeout_seconds() const { return options_.timeout_seconds; }

  // The place of one collective in the order of all. The collectives after it wait for its start,
  // so dropping it (because what should start it was skipped after an error) fails the group, which
  // must outlive it.
  class MXTRAIN_API Place {
   public:
    Place(Place&& other) noexcept;
    Place& operator=(Place&&) = delete;
    ~Place();

   private:
    friend class ProcessGroup;
    Place(ProcessGroup* group, int64_t number) : group_(group), number_(number) {}
    ProcessGroup* group_;  // null once started
    int64_t number_;
  };
  // The next place. By one thread.
  Place Reserve();
  // `done` is called on the lane, with an error if the collective failed, and must not wait. By any
  // thread. After the first failure every collective fails at once.
  void Start(Place place, const Collective& collective, Done done);
  // The same for a message.
  void Start(const Message& message, Done done);
  // Waits until no receive is in flight that is not awaited. Those that are dropped, as by Close,
  // end without a call of their Done.
  void DropReceives();
  // Whether this rank waits for others until they send something, with nothing of its own in
  // flight. While it does, they have as long as for a collective, from the last arrival of
  // anything.
  void Rest(bool rests);

  // Reserve, start and wait. Throws.
  void Run(const Collective& collective);
  void Barrier();
  // The texts of all ranks, in their order.
  std::vector<std::string> GatherText(const std::string& own);
  std::string BroadcastText(const std::string& of_first);

  // Nothing more will be started: what is reserved or in flight fails with this text, and so does
  // everything later. For a rank that ends by an error of its own, whose pushed work would
  // otherwise wait for other ranks. The transport may still touch the memory of what was in flight
  // if it is called again, which only Abort does.
  void Fail(const std::string& text);
  bool failed() const;
  // How long a wait for another rank may take, as far as is known now.
  double SecondsOfWait() const;

  // With nothing in flight. Waits for the other ranks, no longer than the timeout, also while they
  // are asked to end.
  void Close();
  // Ends all ranks; may not return.
  void Abort(int exit_code);

  struct Stats {
    int64_t collectives = 0, bytes = 0;
    double seconds =
        0;  // with at least one in flight, begun by this rank and perhaps not by others
  };
  Stats stats() const;

 private:
  struct Started {
    Collective collective;
    Done done;
  };
  struct Flight {
    Done done;
    int64_t begin_ns = 0;
    bool awaited = true;
  };
  using Flights =
      std::map<int64_t, Flight>;  // collectives by place, then messages; the oldest first
  // What is begun next.
  struct Ready {
    std::vector<std::pair<int64_t, Started>> collectives;
    std::vector<std::pair<Message, Done>> messages;
    bool drops_receives = false;
    bool empty() const { return collectives.empty() && messages.empty(); }
  };
  enum class End : uint8_t { kNone, kClose, kAbort, kLeave };

  void Serve(Transport& transport);
  bool TakeStarted(Ready* ready);
  void Begin(Transport& transport, Ready* ready, Flights* flights);
  static void Drop(Transport& transport, Flights* flights);
  void FailAll(Transport& transport, const std::exception_ptr& error, Flights* flights);
  void Leave(End end, int exit_code);
  int64_t NextPlace() const;

  const Options options_;
  // Constant once the constructor has returned.
  int rank_ = 0, size_ = 1;
  std::string transport_name_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::exception_ptr error_ MXTRAIN_GUARDED_BY(mutex_);  // the first failure
  End end_ MXTRAIN_GUARDED_BY(mutex_) = End::kNone;
  int exit_code_ MXTRAIN_GUARDED_BY(mutex_) = 0;
  int64_t reserved_ MXTRAIN_GUARDED_BY(mutex_) = 0;
  int64_t next_ MXTRAIN_GUARDED_BY(mutex_) = 0;  // the place that the lane begins next
  std::map<int64_t, Started> started_ MXTRAIN_GUARDED_BY(mutex_);
  std::vector<std::pair<Message, Done>> messages_ MXTRAIN_GUARDED_BY(mutex_);  // to begin
  bool drops_receives_ MXTRAIN_GUARDED_BY(mutex_) = false;                     // asks the lane to
  bool lane_ended_ MXTRAIN_GUARDED_BY(mutex_) = false;  // nothing is in flight
  Stats stats_ MXTRAIN_GUARDED_BY(mutex_);
  // Ids of messages; those of collectives are their places.
  static constexpr int64_t kFirstMessage = int64_t{1} << 62;
  int64_t next_message_ = kFirstMessage;  // of the lane
  std::atomic<bool> closing_{false};
  std::atomic<int64_t> rests_since_ns_{0};  // 0: it does not rest
  std::thread lane_;
};

}  // namespace mxtrain
