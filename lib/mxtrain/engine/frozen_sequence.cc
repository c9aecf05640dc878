// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/internal/frozen_sequence.h"

#include <algorithm>

namespace mxtrain::engine {

FrozenSequence::FrozenSequence(std::vector<SequenceOp> ops, std::vector<PortUse> port_uses,
                               std::span<WorkerPool* const> pools)
    : ops_(std::move(ops)), port_uses_(std::move(port_uses)) {
  PortUse token{.written = true, .ops = {}};
  nodes_.reserve(ops_.size());
  for (int i = 0; i < num_ops(); ++i) {
    const SequenceOp& op = ops_[i];
    nodes_.push_back({pools[i], {}, op.reads});
    on_devices_ = on_devices_ || lane(i);
    nodes_[i].ports.insert(nodes_[i].ports.end(), op.writes.begin(), op.writes.end());
    for (int earlier : op.after) {
      nodes_[earlier].successors.push_back(i);
      nodes_[i].crosses = nodes_[i].crosses || (lane(earlier) && lane(earlier) != lane(i));
    }
    if (op.after.empty()) token.ops.push_back(i);
    initial_counters_.push_back(
        static_cast<int>(op.after.size() + nodes_[i].ports.size() + (op.after.empty() ? 1 : 0)));
  }
  port_uses_.push_back(std::move(token));
  for (const PortUse& use : port_uses_)
    initial_counters_.push_back(static_cast<int>(use.ops.size()));
  initial_counters_.push_back(num_ops());
}

SequenceRun* FrozenSequence::TakeRun() {
  if (SequenceRun* run = free_runs_.Get()) return run;
  return runs_.emplace_back(std::make_unique<SequenceRun>(*this)).get();
}

SequenceRun::SequenceRun(FrozenSequence& sequence)
    : sequence_(sequence),
      works_(sequence.num_ops()),
      ports_(sequence.port_uses_.size()),
      failures_(sequence.num_ops()),
      issued_(sequence.on_devices_ ? sequence.num_ops() : 0) {
  for (int i = 0; i < sequence.num_ops(); ++i) {
    works_[i].kind = WorkKind::kSequenceOp;
    works_[i].priority = sequence.ops_[i].priority;
    works_[i].pool = sequence.nodes_[i].pool;
    works_[i].run = this;
    works_[i].index = i;
  }
  for (int i = 0; i < static_cast<int>(ports_.size()); ++i) {
    SequencePortClaim& port = ports_[i];
    port.kind = WorkKind::kSequencePort;
    port.run = this;
    port.port = i;
    port.link.claim = &port;
    port.link.write = sequence.port_uses_[i].written;
    port.link.renews = sequence.port_uses_[i].renewed;
  }
}

void SequenceRun::Reset(uint64_t first_order) {
  first_order_ = first_order;
  counters_ = sequence_.initial_counters_;
  for (SequencePortClaim& port : ports_) {
    port.missing.store(1, std::memory_order_relaxed);
    port.order = first_order;
    port.ClearMarks();
  }
  marked_.store(false, std::memory_order_relaxed);
  if (!failed_.load(std::memory_order_relaxed)) return;
  failed_.store(false, std::memory_order_relaxed);
  for (FirstFailure& failure : failures_) failure.Clear();
  for (SequencePortClaim& port : ports_) {
    port.failure.Clear();
    port.leaving.Clear();
  }
}

void SequenceRun::CountDown(int op, ReadyList* ready) {
  if (!CountDown(op)) return;
  works_[op].order = first_order_ + op;
  works_[op].marked = sequence_.nodes_[op].crosses || marked_.load(std::memory_order_relaxed);
  ready->Push(&works_[op]);
}

void SequenceRun::GrantPort(SequencePortClaim& port, ReadyList* ready) {
  const PortUse& use = sequence_.port_uses_[port.port];
  if (port.failure.get()) {
    failed_.store(true, std::memory_order_relaxed);
    for (int op : use.ops) failures_[op].Offer(port.failure.get(), port.port);
  }
  if (port.marked) marked_.store(true, std::memory_order_relaxed);
  // After the last count the run may end on another thread and be reused: only its constant members
  // may be read from then on.
  for (int op : use.ops) CountDown(op, ready);
}

FailureRef SequenceRun::Inherited(int op) const {
  return failed_.load(std::memory_order_relaxed) ? failures_[op].get() : nullptr;
}

void SequenceRun::Fail(int op, const FailureRef& failure) {
  failures_[op].Offer(failure, sequence_.num_ports() + op);
  failed_.store(true, std::memory_order_relaxed);
}

void SequenceRun::CollectMarks(int op) {
  SequenceOpWork& work = works_[op];
  work.ClearMarks();
  if (!work.marks) work.marks = std::make_unique<DeviceMarks>();
  const SequenceOp& spec = sequence_.ops_[op];
  const DeviceLane* own = sequence_.lane(op);
  for (int earlier : spec.after) {
    if (sequence_.lane(earlier) && sequence_.lane(earlier) != own)
      work.marks->Add(issued_[earlier]);
  }
  const auto add = [&](int port) {
    if (ports_[port].marked) work.marks->Add(*ports_[port].marks);
  };
  for (int port : sequence_.nodes_[op].ports) add(port);
  if (spec.after.empty()) add(sequence_.num_ports());
  work.marked = !work.marks->empty();
}

const DeviceMarks* SequenceRun::CollectPortMarks(int port) {
  if (!sequence_.on_devices_) return nullptr;
  SequencePortClaim& claim = ports_[port];
  claim.ClearMarks();
  if (!claim.marks) claim.marks = std::make_unique<DeviceMarks>();
  for (int op : sequence_.port_uses_[port].ops) claim.marks->Add(issued_[op]);
  return claim.marks.get();
}

// All operations follow the token's, so only the last work on each lane matters.
const DeviceMarks* SequenceRun::CollectAllMarks() {
  if (!sequence_.on_devices_) return nullptr;
  SequencePortClaim& token = ports_.back();
  token.ClearMarks();
  if (!token.marks) token.marks = std::make_unique<DeviceMarks>();
  for (const DeviceMark& mark : issued_) token.marks->Add(mark);
  return token.marks.get();
}

void SequenceRun::SpreadFailure(int op) {
  if (!failures_[op].get()) return;
  for (int successor : sequence_.nodes_[op].successors) failures_[successor].Offer(failures_[op]);
  for (int port : sequence_.ops_[op].writes) ports_[port].leaving.Offer(failures_[op]);
}

bool SequenceRun::Finish(int op, ReadyList* ready) {
  const FrozenSequence::Node& node = sequence_.nodes_[op];
  if (failed_.load(std::memory_order_relaxed)) SpreadFailure(op);
  for (int successor : node.successors) CountDown(successor, ready);
  for (int port : node.ports) {
    if (!CountDown(sequence_.PortCounter(port))) continue;
    Link& link = ports_[port].link;
    // Before the lane issues the next operation, behind which a stream that needs this one would
    // wait too.
    if (link.write && sequence_.on_devices_ && issued_[op].lane && !node.successors.empty())
      issued_[op].lane->SetEventBehind(issued_[op].ticket);
    link.var->Release(&link, ports_[port].leaving.get(), CollectPortMarks(port), ready);
  }
  return CountDown(sequence_.RunCounter());
}

}  // namespace mxtrain::engine
