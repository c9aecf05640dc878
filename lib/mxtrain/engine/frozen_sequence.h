#pragma once
// A frozen sequence and its runs. The sequence holds what is the same in every push: operations, successors, ports, initial counters. A run
// holds what a push changes, and is used again by later pushes, so that a replay copies the counters and allocates nothing.
//
// Invariants: an operation waits for its predecessors and for every port that it names; one without predecessors also waits for the token,
// a variable of the sequence that each run writes from its first operation to its last, so that runs do not overlap. A port is given back
// when the last operation that names it has finished; a run ends when all operations have.
//
// On devices an operation follows the work of its predecessors on other lanes and what its ports (and the token) were granted with; a port
// is given back with the work of the operations that name it.
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "mxtrain/engine/engine.h"
#include "mxtrain/engine/free_list.h"
#include "mxtrain/engine/sequence_plan.h"
#include "mxtrain/engine/threaded_var.h"
#include "mxtrain/engine/work.h"
#include "mxtrain/engine/worker_pool.h"

namespace mxtrain::engine {

class FrozenSequence;
class SequenceRun;

struct SequenceOpWork : Claim {
  SequenceRun* run = nullptr;
  int index = 0;
};

struct SequencePortClaim : Claim {
  SequenceRun* run = nullptr;
  int port = 0;
  Link link;
  RankedError leaving;  // what the variable will carry when the port is given back
};

class SequenceRun {
 public:
  explicit SequenceRun(FrozenSequence& sequence);

  FrozenSequence& sequence() { return sequence_; }
  // Makes the run ready for a push whose operations take their order from `first_order` on.
  void Reset(uint64_t first_order);
  // The last port is the token.
  SequencePortClaim& port(int index) { return ports_[index]; }

  // The port's variable is granted: operations that waited for nothing else become ready.
  void GrantPort(SequencePortClaim& port, ReadyList* ready);
  // The error that the operation inherits; null when it may run. Valid once the operation is ready.
  std::exception_ptr InheritedError(int op) const;
  // The operation failed by itself (not by inheritance).
  void Fail(int op, const std::exception_ptr& error);
  // What the operation follows on devices; valid once it is ready.
  void CollectMarks(int op);
  // The operation was issued on a device.
  void SetMark(int op, DeviceMark mark) { issued_[op] = mark; }
  // All that the run has issued on devices, for the token; null: nothing.
  const DeviceMarks* CollectAllMarks();
  // The operation has ended, whichever way; true when it was the last of the run.
  bool Finish(int op, ErrorLedger& ledger, ReadyList* ready);

  SequenceRun* next_free = nullptr;  // FreeList's

 private:
  void SpreadError(int op);
  // Of the port's operations, into the claim; null: none ran on a device.
  const DeviceMarks* CollectPortMarks(int port);
  void CountDown(int op, ReadyList* ready);
  bool CountDown(int counter) { return std::atomic_ref(counters_[counter]).fetch_sub(1, std::memory_order_acq_rel) == 1; }

  FrozenSequence& sequence_;
  uint64_t first_order_ = 0;
  std::vector<SequenceOpWork> works_;
  std::vector<int> counters_;  // as FrozenSequence::initial_counters_
  std::vector<SequencePortClaim> ports_;
  // Errors are rare: as long as failed_ is false nobody looks at errors_. It is set before the counters that let successors see it go down.
  std::atomic<bool> failed_{false};
  std::vector<RankedError> errors_;  // of each operation
  std::atomic<bool> marked_{false};  // some port was granted with marks; set before the counters go down, as failed_
  std::vector<DeviceMark> issued_;   // of each operation; empty when none runs on a device
};

class FrozenSequence final : public Sequence {
 public:
  // `pools[i]` serves operation i.
  FrozenSequence(std::vector<SequenceOp> ops, std::vector<PortUse> port_uses, std::span<WorkerPool* const> pools);

  int num_ops() const { return static_cast<int>(ops_.size()); }
  int num_ports() const { return static_cast<int>(port_uses_.size()) - 1; }  // without the token
  SequenceOp& op(int index) { return ops_[index]; }
  const PortUse& port_use(int port) const { return port_uses_[port]; }
  ThreadedVar& token() { return token_; }

  // A run that is not in use; under the engine's push lock.
  SequenceRun* TakeRun();
  void ReturnRun(SequenceRun* run) { free_runs_.Put(run); }

  std::atomic<int> uses{1};  // the owner's, and one for each push under way

 private:
  friend class SequenceRun;

  struct Node {
    WorkerPool* pool;
    std::vector<int> successors;
    std::vector<int> ports;
    bool crosses = false;  // a predecessor runs on a device, and on another lane than this one
  };
  DeviceLane* lane(int op) const { return nodes_[op].pool->lane(); }
  // Counters: of each operation what it still waits for; of each port the operations that have not finished with it; of the run likewise.
  int PortCounter(int port) const { return num_ops() + port; }
  int RunCounter() const { return num_ops() + num_ports() + 1; }

  std::vector<SequenceOp> ops_;
  std::vector<PortUse> port_uses_;  // the token last
  std::vector<Node> nodes_;
  bool on_devices_ = false;  // some operation runs on a device
  std::vector<int> initial_counters_;
  ThreadedVar token_;
  std::vector<std::unique_ptr<SequenceRun>> runs_;  // guarded by the push lock
  FreeList<SequenceRun> free_runs_;
};

}  // namespace mxtrain::engine
