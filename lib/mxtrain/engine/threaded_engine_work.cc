// SPDX-License-Identifier: Apache-2.0
// What the threaded engine's workers do: run what became ready, and release what waits for its end.
#include <exception>
#include <utility>
#include <variant>

#include "mxtrain/base/clock.h"
#include "mxtrain/base/error.h"
#include "mxtrain/engine/function_scope.h"
#include "mxtrain/engine/internal/threaded_engine.h"

namespace mxtrain::engine {

// ---- What became ready

Work* ThreadedEngine::Dispatch(ReadyList& ready, const WorkerPool* here) {
  Work* mine = nullptr;
  while (Work* work = ready.Pop()) {
    if (work->marked && AwaitDevices(work)) continue;
    if (!work->pool) {
      Complete(static_cast<Claim*>(work), &ready);
      continue;
    }
    if (work->pool == here && (!mine || Precedes(*work, *mine))) std::swap(work, mine);
    if (work) work->pool->Enqueue(work);
  }
  return mine;
}

void ThreadedEngine::Complete(Claim* claim, ReadyList* ready) {
  switch (claim->kind) {
    case WorkKind::kSequencePort: {
      auto* port = static_cast<SequencePortClaim*>(claim);
      port->run->GrantPort(*port, ready);
      return;
    }
    case WorkKind::kWaiter:
      return CompleteWaiter(static_cast<Waiter*>(claim), ready);
    case WorkKind::kDeletion:
      return RunDeletion(static_cast<Task*>(claim), ready);
    case WorkKind::kTask:
    case WorkKind::kSequenceOp:
      break;
  }
  MXTRAIN_ASSERT(false && "a function without workers became ready");
}

// On the granting thread: the memory is free before the next function runs, and no worker is
// needed.
void ThreadedEngine::RunDeletion(Task* deletion, ReadyList* ready) {
  FunctionScope scope(this);
  if (Fn* on_free = std::get_if<Fn>(&deletion->function)) {
    try {
      (*on_free)(RunContext{deletion->ctx, nullptr});
    } catch (...) {
      deletion->outcome = AddFailure(std::current_exception(), deletion->name, deletion->order);
    }
    CountDeletion(*deletion);
  }
  Release(deletion, ready);
  CountFinishedByOutsider();
}

void ThreadedEngine::CountDeletion(const Task& deletion) {
  deletions_pending_.fetch_sub(1);
  if (deletion.parked) deletions_parked_.fetch_sub(1);
  deletions_run_.fetch_add(1);
  if (deletion_waiters_.load() == 0) return;
  MutexLock lock(deletion_mutex_);
  deletion_ran_.NotifyAll();
}

void ThreadedEngine::CompleteWaiter(Waiter* waiter, ReadyList* ready) {
  FailureRef failure;
  if (waiter->takes) {
    failure = waiter->link.var->TakeFailure();
    if (waiter->failure.get() && waiter->failure.rank() == kDeviceRank) {
      if (!failure) failure = waiter->failure.get();
      waiter->link.var->DropFailedMarks();
    }
  }
  waiter->link.var->Release(&waiter->link, nullptr, nullptr, ready);
  // Held to the end: the waiter may be destroyed once it sees `done`.
  MutexLock lock(waiter->mutex);
  waiter->taken = std::move(failure);
  waiter->done = true;
  waiter->changed.NotifyOne();
}

// ---- Device work

bool ThreadedEngine::AwaitDevices(Work* work) {
  if (work->kind == WorkKind::kSequencePort) return false;  // its operations wait
  auto* claim = static_cast<Claim*>(work);
  if (work->kind == WorkKind::kSequenceOp) {
    auto* op = static_cast<SequenceOpWork*>(work);
    op->run->CollectMarks(op->index);
  }
  if (const DeviceLane* lane = work->pool ? work->pool->lane() : nullptr) {
    for (const DeviceMark& mark : *claim->marks) {
      if (mark.lane != lane) mark.lane->SetEventBehind(mark.ticket);
    }
    return false;
  }
  if (work->kind == WorkKind::kDeletion) {
    auto* deletion = static_cast<Task*>(work);
    if (!Frees(*deletion)) return false;
    deletion->parked = true;
    deletions_parked_.fetch_add(1);
  }
  return Park(claim);
}

bool ThreadedEngine::Park(Claim* claim) {
  const DeviceMarks& marks = *claim->marks;
  claim->missing.store(marks.size() + 1, std::memory_order_relaxed);
  int done = 1;
  for (const DeviceMark& mark : marks) done += !mark.lane->Park(claim, mark.ticket);
  claim->ClearMarks();
  return !CountGranted(*claim, done);
}

void ThreadedEngine::Resume(ReadyList& ready) {
  Dispatch(ready, nullptr);
}

void ThreadedEngine::BeginIssue(DeviceLane* lane, Claim* claim) {
  if (!claim->marked) return;
  if (FailureRef failure = lane->WaitFor(*claim->marks)) claim->failure.Offer(failure, kDeviceRank);
}

void ThreadedEngine::CheckLane(const DeviceLane* lane) {
  if (lane && lane->failed()) std::rethrow_exception(lane->failure()->error);
}

// A skipped function has issued nothing, but its stream waits for its dependencies, so its ticket
// stands for those.
void ThreadedEngine::EndIssue(DeviceLane* lane, Task* task) {
  task->ClearMarks();
  const DeviceMark mark = lane->Issue(task->name, task->order);
  if (!mark.lane) return;
  if (!task->marks) task->marks = std::make_unique<DeviceMarks>();
  task->marks->Add(mark);
}

// ---- Running

void ThreadedEngine::EnterWorker(Worker* worker, LaneKind kind, int index) {
  worker->profile_row = profiler_.Row(format("{} {}", NameOf(kind), index));
}

template <typename Body>
std::exception_ptr ThreadedEngine::Try(Body&& body, const Worker& worker, Context ctx,
                                       const char* name, int priority) {
  try {
    if (worker.startup_error) std::rethrow_exception(worker.startup_error);
    ProfileScope span(profiler_, worker.profile_row, name, priority);
    body(RunContext{ctx, worker.stream});
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

FailureRef ThreadedEngine::AddFailure(std::exception_ptr error, const char* name, uint64_t order) {
  if (!error) return nullptr;
  const auto failure = std::make_shared<Failure>(std::move(error), name, order);
  unthrown_.Add(failure);
  return failure;
}

Work* ThreadedEngine::RunWork(Work* work, const Worker& worker) {
  FunctionScope scope(this);
  if (work->kind == WorkKind::kSequenceOp)
    return RunSequenceOp(static_cast<SequenceOpWork*>(work), worker);
  return RunTask(static_cast<Task*>(work), worker);
}

Work* ThreadedEngine::RunTask(Task* task, const Worker& worker) {
  DeviceLane* lane = worker.pool->lane();
  if (lane) BeginIssue(lane, task);
  if (task->failure.get()) {
    task->outcome = task->failure.get();
  } else if (Fn* fn = std::get_if<Fn>(&task->function)) {
    const auto body = [&](RunContext context) {
      CheckLane(lane);
      (*fn)(context);
    };
    std::exception_ptr error = Try(body, worker, task->ctx, task->name, task->priority);
    task->outcome = AddFailure(std::move(error), task->name, task->order);
  } else {
    return RunAsync(task, task->opr ? task->opr->fn : std::get<AsyncFn>(task->function), worker);
  }
  if (lane) EndIssue(lane, task);
  ReadyList ready;
  Release(task, &ready);
  Work* next = Dispatch(ready, worker.pool);
  CountFinished();
  return next;
}

Work* ThreadedEngine::RunAsync(Task* task, AsyncFn& fn, const Worker& worker) {
  task->begin_ns = profiler_.on() ? SteadyNanoseconds() : -1;
  task->open_ends.store(2, std::memory_order_relaxed);
  DeviceLane* lane = worker.pool->lane();
  bool called = false;
  const auto body = [&](RunContext context) {
    CheckLane(lane);
    called = true;
    fn(context, Callback(&ThreadedEngine::OnCallback, task));
  };
  task->body_error = Try(body, worker, task->ctx, task->name, task->priority);
  if (!called) task->open_ends.store(1, std::memory_order_relaxed);  // no callback was created
  if (task->open_ends.fetch_sub(1, std::memory_order_acq_rel) != 1) return nullptr;
  JoinAsyncEnds(task);
  ReadyList ready;
  Release(task, &ready);
  Work* next = Dispatch(ready, worker.pool);
  CountFinished();
  return next;
}

Work* ThreadedEngine::RunSequenceOp(SequenceOpWork* work, const Worker& worker) {
  SequenceRun* run = work->run;
  FrozenSequence& sequence = run->sequence();
  const int index = work->index;
  DeviceLane* lane = worker.pool->lane();
  if (lane) BeginIssue(lane, work);
  if (work->failure.get()) run->Fail(index, work->failure.get());
  if (!run->Inherited(index)) {
    SequenceOp& op = sequence.op(index);
    const auto body = [&](RunContext context) {
      CheckLane(lane);
      op.fn(context);
    };
    std::exception_ptr error = Try(body, worker, op.ctx, op.name.c_str(), op.priority);
    if (error) run->Fail(index, AddFailure(std::move(error), op.name.c_str(), work->order));
  }
  if (lane) run->SetMark(index, lane->Issue(sequence.op(index).name.c_str(), work->order));
  work->failure.Clear();
  ReadyList ready;
  const bool last = run->Finish(index, &ready);
  if (last) {
    Link& token = run->port(sequence.num_ports()).link;
    sequence.token().Release(&token, nullptr, run->CollectAllMarks(), &ready);
    sequence.ReturnRun(run);
  }
  Work* next = Dispatch(ready, worker.pool);
  if (last) {
    DropUse(&sequence);
    CountFinished();
  }
  return next;
}

// ---- Completion

void ThreadedEngine::OnCallback(void* token, std::exception_ptr error) {
  auto* task = static_cast<Task*>(token);
  ThreadedEngine* engine = task->engine;
  task->callback_error = std::move(error);
  engine->callbacks_.fetch_add(1);
  if (task->open_ends.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  FunctionScope scope(engine);  // what the function owns is destroyed here and must not wait either
  engine->JoinAsyncEnds(task);
  ReadyList ready;
  engine->Release(task, &ready);
  engine->Dispatch(ready, nullptr);
  engine->CountFinishedByOutsider();
}

void ThreadedEngine::JoinAsyncEnds(Task* task) {
  if (DeviceLane* lane = task->pool->lane()) EndIssue(lane, task);
  std::exception_ptr error = std::exchange(task->body_error, nullptr),
                     reported = std::exchange(task->callback_error, nullptr);
  task->outcome =
      AddFailure(error ? std::move(error) : std::move(reported), task->name, task->order);
  if (task->begin_ns >= 0)
    profiler_.AddAsync(task->name, task->priority, task->begin_ns, SteadyNanoseconds());
}

// The function is destroyed first: what it owned is gone when a wait on the variables returns.
void ThreadedEngine::Release(Task* task, ReadyList* ready) {
  task->function.emplace<std::monostate>();
  if (task->opr) DropUse(std::exchange(task->opr, nullptr));
  const DeviceMarks* marks = task->marks && !task->marks->empty() ? task->marks.get() : nullptr;
  for (int i = 0; i < task->num_links; ++i) {
    Link& link = task->links[i];
    link.var->Release(&link, task->outcome, marks, ready);
  }
  if (task->kind == WorkKind::kDeletion) {
    task->links[0].var->Reset();
    vars_.Put(task->links[0].var);
  }
  task->parked = false;
  task->outcome = nullptr;
  task->failure.Clear();
  task->ClearMarks();
  tasks_.Put(task);
}

void ThreadedEngine::DropUse(ThreadedOpr* opr) {
  if (opr->uses.fetch_sub(1, std::memory_order_acq_rel) == 1) oprs_.Delete(opr);
}

void ThreadedEngine::DropUse(FrozenSequence* sequence) {
  if (sequence->uses.fetch_sub(1, std::memory_order_acq_rel) == 1) sequences_.Delete(sequence);
}

// Either this thread sees the waiter's mark or the waiter sees the new count, by sequential
// consistency.
void ThreadedEngine::CountFinished() {
  finished_.fetch_add(1);
  if (idle_waiters_.load() == 0) return;
  MutexLock lock(idle_mutex_);
  idle_.NotifyAll();
}

// Like CountFinished, for threads that the destructor does not join: the lock keeps it waiting
// until they are done with the engine.
void ThreadedEngine::CountFinishedByOutsider() {
  MutexLock lock(idle_mutex_);
  finished_.fetch_add(1);
  idle_.NotifyAll();
}

}  // namespace mxtrain::engine
