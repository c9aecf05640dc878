// SPDX-License-Identifier: Apache-2.0
#pragma once
// A frozen sequence and its runs. The sequence holds what all pushes share: operations, successors,
// ports, initial counters. A run holds the state of one push and is reused by later pushes: a
// replay copies the counters and allocates nothing.
//
// Invariants: an operation waits for its predecessors and for every port it names; one without
// predecessors also waits for the token, a variable of the sequence that each run writes from its
// first to its last operation, so runs do not overlap. A port is released when the last operation
// that names it has finished; a run ends when all operations have.
//
// On devices an operation waits for the work of its predecessors on other lanes and for what its
// ports (and the token) were granted with; a port is released with the work of the operations that
// name it.
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "mxtrain/engine/engine.h"
#include "mxtrain/engine/internal/free_list.h"
#include "mxtrain/engine/internal/sequence_plan.h"
#include "mxtrain/engine/internal/threaded_var.h"
#include "mxtrain/engine/internal/work.h"
#include "mxtrain/engine/internal/worker_pool.h"

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
  FirstFailure leaving;  // what the variable will keep when the port is released
};

class SequenceRun {
 public:
  explicit SequenceRun(FrozenSequence& sequence);

  FrozenSequence& sequence() { return sequence_; }
  // Prepares the run for a push whose operations are numbered from `first_order`.
  void Reset(uint64_t first_order);
  // The last port is the token.
  SequencePortClaim& port(int index) { return ports_[index]; }

  // The port's variable was granted: operations waiting only for it become ready.
  void GrantPort(SequencePortClaim& port, ReadyList* ready);
  // The failure that the operation inherits; null when it may run. Valid once it is ready.
  FailureRef Inherited(int op) const;
  // The operation failed by itself (not by inheritance).
  void Fail(int op, const FailureRef& failure);
  // Device work the operation must wait for; valid once it is ready.
  void CollectMarks(int op);
  // The operation was issued on a device.
  void SetMark(int op, DeviceMark mark) { issued_[op] = mark; }
  // All device work issued by the run, for the token; null: none.
  const DeviceMarks* CollectAllMarks();
  // The operation ended, successfully or not; true if it was the last of the run.
  bool Finish(int op, ReadyList* ready);

  SequenceRun* next_free = nullptr;  // FreeList's

 private:
  void SpreadFailure(int op);
  // Collects the marks of the port's operations in the claim; null: none ran on a device.
  const DeviceMarks* CollectPortMarks(int port);
  void CountDown(int op, ReadyList* ready);
  bool CountDown(int counter) {
    return std::atomic_ref(counters_[counter]).fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  FrozenSequence& sequence_;
  uint64_t first_order_ = 0;
  std::vector<SequenceOpWork> works_;
  std::vector<int> counters_;  // as FrozenSequence::initial_counters_
  std::vector<SequencePortClaim> ports_;
  // Failures are rare: failures_ is read only if failed_ is set, which happens before the counters
  // that release successors are decremented.
  std::atomic<bool> failed_{false};
  std::vector<FirstFailure> failures_;  // of each operation
  // Some port was granted with marks; set before the counters are decremented, like failed_.
  std::atomic<bool> marked_{false};
  std::vector<DeviceMark> issued_;  // of each operation; empty when none runs on a device
};

class FrozenSequence final : public Sequence {
 public:
  // `pools[i]` serves operation i.
  FrozenSequence(std::vector<SequenceOp> ops, std::vector<PortUse> port_uses,
                 std::span<WorkerPool* const> pools);

  int num_ops() const { return static_cast<int>(ops_.size()); }
  int num_ports() const { return static_cast<int>(port_uses_.size()) - 1; }  // without the token
  SequenceOp& op(int index) { return ops_[index]; }
  const PortUse& port_use(int port) const { return port_uses_[port]; }
  ThreadedVar& token() { return token_; }

  // An unused run; call with the engine's push lock held.
  SequenceRun* TakeRun();
  void ReturnRun(SequenceRun* run) { free_runs_.Put(run); }

  std::atomic<int> uses{1};  // the owner's, plus one per pending push

 private:
  friend class SequenceRun;

  struct Node {
    WorkerPool* pool;
    std::vector<int> successors;
    std::vector<int> ports;
    bool crosses = false;  // a predecessor runs on another lane, of a device
  };
  DeviceLane* lane(int op) const { return nodes_[op].pool->lane(); }
  // Counters: per operation, what it still waits for; per port and for the run, the operations not
  // finished.
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
