// SPDX-License-Identifier: Apache-2.0
// Collectives and messages over MPI, non-blocking ones of MPI 3. Compiled once for each
// implementation of MPI, whose binary interfaces differ, into a library of its own
// (device/mpi_library.h).
#include <mpi.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "mxtrain/base/dtype.h"
#include "mxtrain/device/process_group.h"

namespace mxtrain {
namespace {

// MPI counts in int.
constexpr int64_t kMostElements = 1 << 30;
constexpr int kTold = 1;          // a tag
constexpr int kFirstMessage = 2;  // of the tags of messages

std::string MpiMessage(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<size_t>(length)};
}

void Check(int code, const char* call) {
  if (code != MPI_SUCCESS) Throw(kRankLost, "{} failed: {}", call, MpiMessage(code));
}

MPI_Datatype TypeOf(DType type) {
  switch (type) {
    case DType::kFloat32:
      return MPI_FLOAT;
    case DType::kFloat64:
      return MPI_DOUBLE;
    case DType::kInt32:
      return MPI_INT32_T;
    case DType::kInt64:
      return MPI_INT64_T;
    case DType::kBfloat16:
      return MPI_UINT16_T;
    case DType::kUint8:
      return MPI_BYTE;
    default:
      Throw(ErrorKind::kBug, "MPI does not move elements of type {}", NameOf(type));
  }
}

// MPI_User_function: *into += *from, in float32.
void AddBfloat16(void* from, void* into, int* n, MPI_Datatype* /*type*/) {
  const auto* a = static_cast<const bfloat16*>(from);
  auto* b = static_cast<bfloat16*>(into);
  for (int i = 0; i < *n; ++i) b[i] = bfloat16(static_cast<float>(a[i]) + static_cast<float>(b[i]));
}

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    int ready = 0;
    MPI_Initialized(&ready);
    if (ready) Throw(ErrorKind::kUsage, "MPI can be initialized only once in a process");
    int provided = MPI_THREAD_SINGLE;
    Check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_FUNNELED)
      Throw(ErrorKind::kDevice, "this MPI cannot be used from a thread (MPI_THREAD_FUNNELED)");
    // A communicator of our own, so that messages of others do not interfere. Calls on requests of
    // several communicators report their errors to the predefined ones.
    Check(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "MPI_Comm_dup");
    for (MPI_Comm comm : {world_, MPI_COMM_WORLD, MPI_COMM_SELF})
      Check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    Check(MPI_Comm_rank(world_, &rank_), "MPI_Comm_rank");
    Check(MPI_Comm_size(world_, &size_), "MPI_Comm_size");
    Check(MPI_Op_create(AddBfloat16, /*commute=*/1, &add_bfloat16_), "MPI_Op_create");
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string Describe() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string version(text, static_cast<size_t>(length));
    return version.substr(0, version.find_first_of(",\n"));
  }

  void Begin(const Collective& c, int64_t id) override {
    if (c.kind == Collective::Kind::kAllGather && c.n > kMostElements)
      Throw(ErrorKind::kBug, "parts of {} elements are too large to gather", c.n);
    int64_t begin = 0;
    do {
      const auto n = static_cast<int>(std::min(c.n - begin, kMostElements));
      requests_.push_back(MPI_REQUEST_NULL);
      ids_.push_back(id);
      BeginPiece(c, static_cast<char*>(c.data) + begin * SizeOf(c.type), n, &requests_.back());
      begin += n;
    } while (begin < c.n);
  }

  void Begin(const Message& m, int64_t id) override {
    const int tag = kFirstMessage + m.tag;
    int64_t begin = 0;
    do {
      const auto n = static_cast<int>(std::min(m.bytes - begin, kMostElements));
      char* const data = static_cast<char*>(m.data) + begin;
      requests_.push_back(MPI_REQUEST_NULL);
      ids_.push_back(id);
      if (m.kind == Message::Kind::kSend) {
        Check(MPI_Isend(data, n, MPI_BYTE, m.peer, tag, world_, &requests_.back()), "MPI_Isend");
      } else {
        Check(MPI_Irecv(data, n, MPI_BYTE, m.peer, tag, world_, &requests_.back()), "MPI_Irecv");
      }
      begin += n;
    } while (begin < m.bytes);
  }

  void Poll(std::vector<int64_t>* completed) override {
    if (requests_.empty()) return;
    int count = 0;
    done_.resize(requests_.size());
    Check(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, done_.data(),
                       MPI_STATUSES_IGNORE),
          "MPI_Testsome");
    if (count <= 0) return;
    std::vector<int64_t> ended;
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(done_[static_cast<size_t>(i)]);
      ended.push_back(ids_[at]);
      ids_[at] = -1;
    }
    RemoveEnded();
    // A large one is done with its last piece.
    for (int64_t id : ended) {
      if (std::find(ids_.begin(), ids_.end(), id) == ids_.end() &&
          std::find(completed->begin(), completed->end(), id) == completed->end())
        completed->push_back(id);
    }
  }

  void Tell(int64_t id) override {
    told_.push_back(id);
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      MPI_Request sent = MPI_REQUEST_NULL;
      Check(MPI_Isend(&told_.back(), 1, MPI_INT64_T, r, kTold, world_, &sent), "MPI_Isend");
      Check(MPI_Request_free(&sent), "MPI_Request_free");
    }
  }

  std::vector<int64_t> Heard() override {
    heard_.resize(static_cast<size_t>(size_), -1);
    while (true) {
      int there = 0;
      MPI_Status status;
      Check(MPI_Iprobe(MPI_ANY_SOURCE, kTold, world_, &there, &status), "MPI_Iprobe");
      if (!there) return heard_;
      Check(MPI_Recv(&heard_[static_cast<size_t>(status.MPI_SOURCE)], 1, MPI_INT64_T,
                     status.MPI_SOURCE, kTold, world_, MPI_STATUS_IGNORE),
            "MPI_Recv");
    }
  }

  void Cancel(int64_t id) override {
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] != id) continue;
      Check(MPI_Cancel(&requests_[i]), "MPI_Cancel");
      Check(MPI_Wait(&requests_[i], MPI_STATUS_IGNORE), "MPI_Wait");
      ids_[i] = -1;
    }
    RemoveEnded();
  }

  void Abandon() override {}

  void Close() override {
    Heard();  // what was told before a wait ended well after all
    MPI_Op_free(&add_bfloat16_);
    MPI_Comm_free(&world_);
    Check(MPI_Finalize(), "MPI_Finalize");
  }

  void Abort(int exit_code) override { MPI_Abort(world_, exit_code); }

 private:
  void BeginPiece(const Collective& c, void* data, int n, MPI_Request* request) const {
    const MPI_Datatype type = TypeOf(c.type);
    switch (c.kind) {
      case Collective::Kind::kAllReduce:
        return Check(MPI_Iallreduce(MPI_IN_PLACE, data, n, type, OpOf(c), world_, request),
                     "MPI_Iallreduce");
      case Collective::Kind::kBroadcast:
        return Check(MPI_Ibcast(data, n, type, c.root, world_, request), "MPI_Ibcast");
      case Collective::Kind::kAllGather:
        return Check(
            MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, n, type, world_, request),
            "MPI_Iallgather");
    }
  }

  // Pieces whose ids are -1.
  void RemoveEnded() {
    size_t kept = 0;
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] < 0) continue;
      ids_[kept] = ids_[i];
      requests_[kept++] = requests_[i];
    }
    ids_.resize(kept);
    requests_.resize(kept);
  }

  MPI_Op OpOf(const Collective& c) const {
    const bool max = c.reduction == Collective::Reduction::kMax;
    if (c.type == DType::kUint8 || (max && c.type == DType::kBfloat16))
      Throw(ErrorKind::kBug, "no {} of {} over ranks", max ? "maximum" : "sum", NameOf(c.type));
    if (max) return MPI_MAX;
    return c.type == DType::kBfloat16 ? add_bfloat16_ : MPI_SUM;
  }

  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  MPI_Op add_bfloat16_ = MPI_OP_NULL;
  // Of each piece in flight, and the collective or message that it belongs to.
  std::vector<MPI_Request> requests_;
  std::vector<int64_t> ids_;
  std::vector<int> done_;     // of Poll, kept to avoid allocations
  std::deque<int64_t> told_;  // MPI may read them later
  std::vector<int64_t> heard_;
};

}  // namespace
}  // namespace mxtrain

// Called by device/mpi_library.cc.
extern "C" MXTRAIN_API mxtrain::Transport* mxtrain_new_mpi_transport() {
  return new mxtrain::MpiTransport();
}
