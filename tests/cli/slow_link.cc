// SPDX-License-Identifier: Apache-2.0
// A slower network between the ranks of one machine: preloaded into every rank, it lets the
// collectives of MPI be done no earlier than they would be over the network that it is told of.
//
//   mpirun -n 2 env LD_PRELOAD=libmxtrain_slow_link_openmpi.so MXTRAIN_LINK=LATENCY_US,GBIT_PER_S
//   mxtrain train ...
//
//   MXTRAIN_LINK       of a message in microseconds, and the bandwidth of each rank in each
//                      direction; or several networks, which take turns, separated by spaces
//   MXTRAIN_LINK_TURN  after so many collectives the next network follows, at first after twice as
//                      many: results on several are then compared within one run
//   MXTRAIN_LINK_LOG   a file; each rank writes FILE.RANK: per collective its name, bytes, the
//                      number of the network, and the times (nanoseconds of the steady clock) at
//                      which this rank began it, the last rank began it, and it was done
//
// MPI moves the data as it would without; its own time is not subtracted. A collective takes the
// link after the one before it, once all ranks have begun it, for the time of its bytes, and
// arrives a latency per message later, which others may use. Costs of the algorithms that MPI uses
// (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in
// MPICH", 2005): see CostOf.
//
// Callers have a generalized request in place of MPI's. One thread makes all calls
// (MPI_THREAD_FUNNELED).
#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <new>
#include <sstream>
#include <string>
#include <vector>

namespace {

int64_t Now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "slow_link: %s\n", what);
  std::fflush(stderr);
  std::abort();
}

const char* SettingOf(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

enum class Kind : uint8_t { kAllReduce, kBroadcast, kAllGather };

class SlowLink {
 public:
  // All ranks.
  SlowLink() {
    std::istringstream links(SettingOf("MXTRAIN_LINK"));
    for (std::string link; links >> link;) {
      double latency_us = 0, gigabit = 0;
      if (std::sscanf(link.c_str(), "%lf,%lf", &latency_us, &gigabit) != 2 || latency_us < 0 ||
          gigabit <= 0)
        Fail("MXTRAIN_LINK must have LATENCY_US,GBIT_PER_S");
      networks_.push_back({1e3 * latency_us, 8 / gigabit});
    }
    if (networks_.empty()) Fail("MXTRAIN_LINK names no network");
    turn_ = std::atoll(SettingOf("MXTRAIN_LINK_TURN"));
    if (networks_.size() > 1 && turn_ < 1) Fail("MXTRAIN_LINK_TURN must be a count of collectives");
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    PMPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm machine = MPI_COMM_NULL;
    PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    int here = 0;
    PMPI_Comm_size(machine, &here);
    if (here != size_) Fail("all ranks must be on one machine, whose clock they share");
    PMPI_Win_allocate_shared(sizeof(Begun), sizeof(int64_t), MPI_INFO_NULL, machine, &begun_,
                             &window_);
    new (begun_) Begun();
    PMPI_Barrier(machine);
    if (const char* log = SettingOf("MXTRAIN_LINK_LOG"); *log) {
      log_ = std::fopen((std::string(log) + "." + std::to_string(rank_)).c_str(), "w");
      if (!log_) Fail("the log cannot be written");
    }
  }
  SlowLink(const SlowLink&) = delete;
  SlowLink& operator=(const SlowLink&) = delete;

  // Takes over a request of MPI's, which has just begun.
  void Begin(Kind kind, int64_t bytes, MPI_Request* request) {
    const int64_t now = Now();
    Flight flight{kind, bytes, next_, now, 0, 0, *request, MPI_REQUEST_NULL};
    PMPI_Grequest_start(Query, Free, Cancel, nullptr, &flight.shown);
    *request = flight.shown;
    // Read by ranks that have not come so far yet: no rank is a whole table ahead, as it needs the
    // results of what it began.
    Slot& slot = begun_->slots[static_cast<size_t>(next_) % kSlots];
    slot.time.store(now, std::memory_order_relaxed);
    slot.number.store(next_, std::memory_order_release);
    ++next_;
    flights_.push_back(flight);
  }

  void Poll() {
    const int64_t now = Now();
    for (Flight& flight : flights_) {
      if (flight.due == 0) {
        flight.all_begun = AllBegun(flight.number);
        if (flight.all_begun == 0) break;
        const auto [occupied, late] = CostOf(flight);
        free_ = std::max(free_, static_cast<double>(flight.all_begun)) + occupied;
        flight.due = static_cast<int64_t>(std::ceil(free_ + late));
      }
    }
    // Each makes progress, also those that are late.
    for (Flight& flight : flights_) {
      int done = 1;
      if (flight.own != MPI_REQUEST_NULL) PMPI_Test(&flight.own, &done, MPI_STATUS_IGNORE);
      if (!done || flight.due == 0 || now < flight.due || flight.shown == MPI_REQUEST_NULL)
        continue;
      PMPI_Grequest_complete(flight.shown);
      flight.shown = MPI_REQUEST_NULL;
      if (log_)
        std::fprintf(log_, "%s %lld %zu %lld %lld %lld\n", NameOf(flight.kind),
                     static_cast<long long>(flight.bytes), NetworkOf(flight.number),
                     static_cast<long long>(flight.begun), static_cast<long long>(flight.all_begun),
                     static_cast<long long>(now));
    }
    while (!flights_.empty() && flights_.front().shown == MPI_REQUEST_NULL) flights_.pop_front();
  }

  void Close() {
    if (log_ && std::fclose(log_) != 0) Fail("the log cannot be written");
    PMPI_Win_free(&window_);
  }

 private:
  static constexpr size_t kSlots = 1 << 14;
  struct Slot {
    std::atomic<int64_t> number{-1}, time{0};
  };
  struct Begun {
    Slot slots[kSlots];
  };
  struct Flight {
    Kind kind;
    int64_t bytes;
    int64_t number;
    int64_t begun, all_begun, due;  // the last two are 0 as long as some rank has not begun it
    MPI_Request own, shown;         // MPI's, the caller's
  };
  struct Network {
    double latency, per_byte;  // nanoseconds
  };
  struct Cost {
    double occupied, late;  // nanoseconds
  };

  static const char* NameOf(Kind kind) {
    return kind == Kind::kAllReduce   ? "all_reduce"
           : kind == Kind::kBroadcast ? "broadcast"
                                      : "all_gather";
  }

  // The time at which the last rank began it.
  int64_t AllBegun(int64_t number) {
    int64_t last = 0;
    for (int r = 0; r < size_; ++r) {
      void* base = nullptr;
      MPI_Aint bytes = 0;
      int unit = 0;
      PMPI_Win_shared_query(window_, r, &bytes, &unit, static_cast<void*>(&base));
      const Slot& slot = static_cast<Begun*>(base)->slots[static_cast<size_t>(number) % kSlots];
      if (slot.number.load(std::memory_order_acquire) < number) return 0;
      last = std::max(last, slot.time.load(std::memory_order_relaxed));
    }
    return last;
  }

  size_t NetworkOf(int64_t number) const {
    if (networks_.size() == 1) return 0;
    return static_cast<size_t>(std::max<int64_t>(number / turn_ - 1, 0)) % networks_.size();
  }

  // All-reduce: a ring, 2 (R - 1) messages of a part each, or recursive doubling, log2 R messages
  // of everything, whichever is shorter. All-gather: a ring. Broadcast: a pipelined tree.
  Cost CostOf(const Flight& flight) const {
    const double ranks = size_, rounds = std::ceil(std::log2(ranks)),
                 bytes = static_cast<double>(flight.bytes);
    const Network& network = networks_[NetworkOf(flight.number)];
    const auto cost = [&](double messages, double sent) {
      return Cost{sent * network.per_byte, messages * network.latency};
    };
    const auto sum = [](const Cost& c) { return c.occupied + c.late; };
    const double others = ranks - 1;
    switch (flight.kind) {
      case Kind::kAllReduce: {
        const Cost ring = cost(2 * others, 2 * others / ranks * bytes),
                   doubling = cost(rounds, rounds * bytes);
        return sum(ring) < sum(doubling) ? ring : doubling;
      }
      case Kind::kAllGather:
        return cost(others, others / ranks * bytes);
      case Kind::kBroadcast:
        return cost(rounds, bytes);
    }
    return {};
  }

  static int Query(void*, MPI_Status* status) {
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
  static int Free(void*) { return MPI_SUCCESS; }
  static int Cancel(void*, int) { return MPI_SUCCESS; }

  std::vector<Network> networks_;
  int64_t turn_ = 0;
  int rank_ = 0, size_ = 1;
  MPI_Win window_ = MPI_WIN_NULL;
  Begun* begun_ = nullptr;  // of this rank
  int64_t next_ = 0;
  double free_ = 0;  // when the link is
  std::deque<Flight> flights_;
  std::FILE* log_ = nullptr;
};

SlowLink* link_of_run = nullptr;

int64_t BytesOf(MPI_Datatype type, int n) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return int64_t{size} * n;
}

int Begun(int code, Kind kind, int64_t bytes, MPI_Request* request) {
  if (code == MPI_SUCCESS) link_of_run->Begin(kind, bytes, request);
  return code;
}

}  // namespace

extern "C" {

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) link_of_run = new SlowLink();
  return code;
}

int MPI_Finalize() {
  link_of_run->Close();
  delete link_of_run;
  return PMPI_Finalize();
}

int MPI_Iallreduce(const void* from, void* to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  return Begun(PMPI_Iallreduce(from, to, n, type, op, comm, request), Kind::kAllReduce,
               BytesOf(type, n), request);
}

int MPI_Ibcast(void* data, int n, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  return Begun(PMPI_Ibcast(data, n, type, root, comm, request), Kind::kBroadcast, BytesOf(type, n),
               request);
}

int MPI_Iallgather(const void* from, int n, MPI_Datatype type, void* to, int to_n,
                   MPI_Datatype to_type, MPI_Comm comm, MPI_Request* request) {
  int ranks = 0;
  PMPI_Comm_size(comm, &ranks);
  return Begun(PMPI_Iallgather(from, n, type, to, to_n, to_type, comm, request), Kind::kAllGather,
               BytesOf(to_type, to_n) * ranks, request);
}

int MPI_Testsome(int n, MPI_Request* requests, int* count, int* indices, MPI_Status* statuses) {
  link_of_run->Poll();
  return PMPI_Testsome(n, requests, count, indices, statuses);
}

}  // extern "C"
