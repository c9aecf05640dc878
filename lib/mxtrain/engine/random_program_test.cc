// SPDX-License-Identifier: Apache-2.0
// Random programs of pushes, sequences, deletions, failures, renewals and waits against the naive
// engine's exact result.
//
// Every variable guards a cell: a hash that a write mixes with its own number and with the hashes
// of all that it read. Mixing does not commute, so a wrong order anywhere changes the result. Cells
// have no lock: ThreadSanitizer detects every overlap that the engine allows. GPU functions mix on
// the thread of a fake stream, after they have returned. MXTRAIN_ENGINE_PROGRAMS sets the number of
// programs (1000).
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/engine/engine.h"
#include "tests/support/fake_stream.h"

namespace mxtrain::engine {
namespace {

constexpr int kWorkerCounts[] = {1, 2, 3, 7, 11};
constexpr int kSteps = 40;
constexpr int kGpus = 2;

// For slow programs, one of `divisor`; at least ten. A program for GPU streams, which pause, takes
// almost a second.
int NumPrograms(int divisor = 1) {
  const char* text = std::getenv("MXTRAIN_ENGINE_PROGRAMS");
  return std::max((text ? std::atoi(text) : 1000) / divisor, 10);
}

// ---- Programs

enum class StepKind {
  kSync,
  kAsync,
  kOperator,
  kSequence,
  kDelete,
  kWaitToRead,
  kWaitForVar,
  kWaitForAll,
  kDrain
};
enum class Failure { kNone, kThrow, kReport, kDrop };  // the last two: asynchronous functions only

struct Step {
  StepKind kind = StepKind::kSync;
  int id = 0;
  std::vector<int> reads, writes;  // cells; of a sequence: `reads` are the cells bound to its ports
  std::vector<int> renews;         // of `writes`, as if they were overwritten
  Failure failure = Failure::kNone;
  Context ctx;
  FnProperty property = FnProperty::kNormal;
  int priority = 0;
  int target = 0;  // index of the operator or sequence
};

struct OpSpec {
  int id = 0;
  std::vector<int> after, reads, writes, renews;
  bool fails = false;
  Context ctx;
  FnProperty property = FnProperty::kNormal;
  int priority = 0;
};

struct SequenceSpec {
  int num_ports = 0;
  std::vector<OpSpec> ops;  // the first names no port and comes before all others
};

struct Program {
  int num_cells = 0;
  std::vector<Step> operators;
  std::vector<SequenceSpec> sequences;
  std::vector<std::vector<Step>> threads;  // steps of each pushing thread
};

class Generator {
 public:
  // `on_gpu`: percentage of the functions that run on one of the GPUs.
  explicit Generator(uint32_t seed, int on_gpu = 0) : random_(seed), on_gpu_(on_gpu) {}

  Program Make(int num_threads) {
    program_ = {};
    may_fail_ = num_threads == 1;
    slots_.resize(Pick(2, 7));
    for (int& cell : slots_) cell = program_.num_cells++;
    for (int i = Pick(0, 2); i > 0; --i) program_.operators.push_back(Access(FixedSlots()));
    for (int i = num_threads * Pick(0, 2); i > 0; --i) program_.sequences.push_back(MakeSequence());
    for (int thread = 0; thread < num_threads; ++thread) {
      auto& steps = program_.threads.emplace_back();
      while (static_cast<int>(steps.size()) < kSteps)
        steps.push_back(MakeStep(thread, num_threads));
    }
    return std::move(program_);
  }

 private:
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }
  template <typename T>
  void Shuffle(std::vector<T>* values) {
    std::shuffle(values->begin(), values->end(), random_);
  }
  std::vector<int> FixedSlots() const {
    return {slots_.begin(), slots_.begin() + (slots_.size() + 1) / 2};
  }  // never deleted

  Context AnyContext() {
    return on_gpu_ > 0 && Chance(on_gpu_) ? Context::gpu(Pick(0, kGpus - 1)) : Context::cpu();
  }
  FnProperty AnyProperty() {
    return Chance(60) ? FnProperty::kNormal : static_cast<FnProperty>(Pick(0, 4));
  }

  Step Access(std::vector<int> cells) {
    Step step;
    step.id = ++last_id_;
    Shuffle(&cells);
    const int count = static_cast<int>(cells.size());
    const int writes = Pick(0, std::min(2, count)), reads = Pick(0, std::min(3, count - writes));
    step.writes.assign(cells.begin(), cells.begin() + writes);
    step.reads.assign(cells.begin() + writes, cells.begin() + writes + reads);
    std::copy_if(step.writes.begin(), step.writes.end(), std::back_inserter(step.renews),
                 [this](int) { return Chance(40); });
    step.ctx = AnyContext();
    step.property = AnyProperty();
    step.priority = Pick(-1, 2);
    if (may_fail_ && Chance(6)) step.failure = Failure::kThrow;
    return step;
  }

  SequenceSpec MakeSequence() {
    SequenceSpec spec;
    spec.num_ports = Pick(0, static_cast<int>(slots_.size()));
    spec.ops.emplace_back().ctx = AnyContext();
    std::vector<int> ports(spec.num_ports);
    for (int i = 0; i < spec.num_ports; ++i) ports[i] = i;
    for (int i = 1, n = Pick(1, 7); i <= n; ++i) {
      const Step access = Access(ports);
      OpSpec op{access.id,      {0},
                access.reads,   access.writes,
                access.renews,  access.failure == Failure::kThrow,
                access.ctx,     access.property,
                access.priority};
      for (int j = 1; j < i; ++j) {
        if (Conflict(op, spec.ops[j]) || Chance(20)) op.after.push_back(j);
      }
      spec.ops.push_back(std::move(op));
    }
    return spec;
  }

  static bool Conflict(const OpSpec& a, const OpSpec& b) {
    const auto touches = [](const std::vector<int>& one, const std::vector<int>& other) {
      return std::any_of(one.begin(), one.end(), [&](int x) {
        return std::find(other.begin(), other.end(), x) != other.end();
      });
    };
    return touches(a.writes, b.writes) || touches(a.writes, b.reads) || touches(a.reads, b.writes);
  }

  Step MakeStep(int thread, int num_threads) {
    const int kind = Pick(1, 100);
    Step step = Access(slots_);
    if (kind <= 45) return step;
    if (kind <= 65) {
      step.kind = StepKind::kAsync;
      if (step.failure != Failure::kNone) step.failure = static_cast<Failure>(Pick(1, 3));
    } else if (kind <= 73 && !program_.operators.empty()) {
      step.kind = StepKind::kOperator;
      step.target = Pick(0, static_cast<int>(program_.operators.size()) - 1);
    } else if (kind <= 85 && static_cast<int>(program_.sequences.size()) >= num_threads) {
      // A sequence belongs to one thread, so the order of its pushes is known.
      step.kind = StepKind::kSequence;
      step.target =
          thread +
          num_threads * Pick(0, static_cast<int>(program_.sequences.size()) / num_threads - 1);
      step.reads = slots_;
      Shuffle(&step.reads);
      step.reads.resize(program_.sequences[step.target].num_ports);
    } else if (kind <= 89 && num_threads == 1) {
      const int slot = static_cast<int>(slots_.size()) - 1;
      step.kind = StepKind::kDelete;
      step.writes = {slots_[slot]};
      slots_[slot] = program_.num_cells++;
    } else if (kind <= 98) {
      step.kind = Chance(40)   ? StepKind::kWaitToRead
                  : Chance(80) ? StepKind::kWaitForVar
                               : StepKind::kDrain;
      step.reads = {slots_[Pick(0, static_cast<int>(slots_.size()) - 1)]};
    } else {
      step.kind = StepKind::kWaitForAll;
    }
    return step;
  }

  std::mt19937 random_;
  const int on_gpu_;
  Program program_;
  std::vector<int> slots_;  // the cells that may be named now
  int last_id_ = 0;
  bool may_fail_ = true;
};

// ---- Running

// A thread outside the engine that does the work of asynchronous functions.
class Outside {
 public:
  Outside() : thread_([this] { Run(); }) {}
  ~Outside() {
    Add({});
    thread_.join();
  }
  void Add(UniqueFunction<void()> work) {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_one();
  }

 private:
  void Run() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty(); });
      UniqueFunction<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      if (!work) return;
      work();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<UniqueFunction<void()>> queue_;
  std::thread thread_;
};

struct Cell {
  uint64_t hash = 0;
  std::vector<int> writers;  // ids of pushes, in the order of their writes
};

// What one push saw of a cell: how many writes had been done.
struct Sight {
  int cell;
  size_t writes_before;
};

struct Result {
  std::vector<uint64_t> hashes;
  std::vector<uint64_t> versions;
  std::vector<std::string> messages;  // of all waits
  friend bool operator==(const Result&, const Result&) = default;
};

class Interpreter {
 public:
  Interpreter(const Program& program, EngineOptions options)
      : program_(program), cells_(program.num_cells), handles_(program.num_cells) {
    for (const auto& steps : program.threads) {
      sights_.emplace_back(steps.size());
      stride_ = std::max(stride_, steps.size());
    }
    engine_ = Create(std::move(options));
    for (VarHandle& handle : handles_) handle = engine_->NewVar();
    for (const Step& step : program_.operators) operators_.push_back(NewOperator(step));
    sequences_ = std::vector<BoundSequence>(program_.sequences.size());
    for (size_t i = 0; i < sequences_.size(); ++i)
      Prepare(&sequences_[i], program_.sequences[i], static_cast<int>(i));
  }

  // Runs each list of steps in its own thread if there are several.
  Result Run() {
    if (program_.threads.size() == 1) {
      RunThread(0);
    } else {
      std::vector<std::thread> threads;
      for (size_t i = 0; i < program_.threads.size(); ++i) {
        threads.emplace_back([this, i] { RunThread(i); });
      }
      for (std::thread& thread : threads) thread.join();
    }
    return Finish();
  }

  const std::vector<Cell>& cells() const { return cells_; }
  // By thread and step: what every step saw.
  const std::vector<std::vector<std::vector<Sight>>>& sights() const { return sights_; }

 private:
  struct BoundSequence {
    SequenceHandle handle = nullptr;
    std::vector<const Step*> pushes;  // in order, known beforehand
    std::vector<int> push_ids;
    size_t next_push = 0;       // advanced by the first operation
    const Step* now = nullptr;  // the push that runs
    int now_id = 0;
    std::mutex sights_mutex;  // operations of one push may run together
  };

  int PushId(size_t thread, size_t step) const { return static_cast<int>(thread * stride_ + step); }

  static uint64_t Mix(uint64_t a, uint64_t b) {
    a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2);
    return a * 0xff51afd7ed558ccdULL;
  }

  void Touch(int id, int push_id, const std::vector<int>& reads, const std::vector<int>& writes,
             std::vector<Sight>* sights) {
    uint64_t seen = id;
    for (int cell : reads) {
      seen = Mix(seen, cells_[cell].hash);
      if (sights) sights->push_back({cell, cells_[cell].writers.size()});
    }
    for (int cell : writes) {
      cells_[cell].hash = Mix(cells_[cell].hash, seen);
      cells_[cell].writers.push_back(push_id);
    }
  }

  std::vector<VarHandle> Handles(const std::vector<int>& cells) const {
    std::vector<VarHandle> handles;
    for (int cell : cells) handles.push_back(handles_[cell]);
    return handles;
  }

  [[noreturn]] static void Fail(int id) { Throw(ErrorKind::kData, "failure {}", id); }

  OprHandle NewOperator(const Step& step) {
    AsyncFn fn = [this, &step](RunContext ctx, Callback callback) {
      if (step.failure == Failure::kThrow) Fail(step.id);
      const auto work = [this, &step] { Touch(step.id, -1, step.reads, step.writes, nullptr); };
      FinishOutside(ctx, work, step.id, std::move(callback));
    };
    const std::vector<VarHandle> renews = Handles(step.renews);
    const PushOptions options{
        .ctx = step.ctx, .property = step.property, .name = "operator", .renews = renews};
    return engine_->NewOperator(std::move(fn), Handles(step.reads), Handles(step.writes), options);
  }

  // On a GPU the work is given to the stream, by the body or by the thread outside, and the
  // callback may come before it is done; on the CPU all happens outside.
  template <typename Work>
  void FinishOutside(const RunContext& ctx, Work work, int id, Callback callback) {
    const bool by_body = ctx.stream && id % 2 == 0;
    if (by_body) test::Do(ctx, work);
    outside_.Add([work, ctx, by_body, callback = std::move(callback)]() mutable {
      if (!by_body) test::Do(ctx, work);
      callback();
    });
  }

  void Prepare(BoundSequence* bound, const SequenceSpec& spec, int index) {
    for (size_t thread = 0; thread < program_.threads.size(); ++thread) {
      const auto& steps = program_.threads[thread];
      for (size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].kind != StepKind::kSequence || steps[i].target != index) continue;
        bound->pushes.push_back(&steps[i]);
        bound->push_ids.push_back(PushId(thread, i));
      }
    }
    std::vector<SequenceOp> ops(spec.ops.size());
    ops[0].name = "begin";
    ops[0].ctx = spec.ops[0].ctx;
    ops[0].fn = [bound](RunContext) {
      bound->now = bound->pushes[bound->next_push];
      bound->now_id = bound->push_ids[bound->next_push++];
    };
    for (size_t i = 1; i < ops.size(); ++i) {
      const OpSpec& op = spec.ops[i];
      ops[i].name = "op";
      ops[i].ctx = op.ctx;
      ops[i].property = op.property;
      ops[i].priority = op.priority;
      ops[i].after = op.after;
      ops[i].reads = op.reads;
      ops[i].writes = op.writes;
      ops[i].renews = op.renews;
      ops[i].fn = [this, bound, &op](RunContext ctx) { RunOp(ctx, bound, op); };
    }
    bound->handle = engine_->NewSequence(std::move(ops), spec.num_ports);
  }

  void RunOp(const RunContext& ctx, BoundSequence* bound, const OpSpec& op) {
    if (op.fails) Fail(op.id);
    const auto bind = [&](const std::vector<int>& ports) {
      std::vector<int> cells;
      for (int port : ports) cells.push_back(bound->now->reads[port]);
      return cells;
    };
    test::Do(ctx, [this, bound, &op, id = bound->now_id, reads = bind(op.reads),
                   writes = bind(op.writes)] {
      std::vector<Sight> sights;
      Touch(op.id, id, reads, writes, &sights);
      std::lock_guard lock(bound->sights_mutex);
      std::vector<Sight>& all = SightsOf(id);
      all.insert(all.end(), sights.begin(), sights.end());
    });
  }

  std::vector<Sight>& SightsOf(int push_id) {
    return sights_[push_id / stride_][push_id % stride_];
  }

  void RunThread(size_t thread) {
    const auto& steps = program_.threads[thread];
    for (size_t i = 0; i < steps.size(); ++i) Do(steps[i], PushId(thread, i));
  }

  void Do(const Step& step, int push_id) {
    std::vector<Sight>* sights = &SightsOf(push_id);
    const std::vector<VarHandle> renews = Handles(step.renews);
    const PushOptions options{.ctx = step.ctx,
                              .property = step.property,
                              .priority = step.priority,
                              .name = "function",
                              .renews = renews};
    switch (step.kind) {
      case StepKind::kSync:
        engine_->PushSync(
            [this, &step, push_id, sights](RunContext ctx) {
              if (step.failure != Failure::kNone) Fail(step.id);
              test::Do(ctx, [this, &step, push_id, sights] {
                Touch(step.id, push_id, step.reads, step.writes, sights);
              });
            },
            Handles(step.reads), Handles(step.writes), options);
        return;
      case StepKind::kAsync:
        return PushAsync(step, push_id, sights, options);
      case StepKind::kOperator:
        return engine_->Push(operators_[step.target], step.priority);
      case StepKind::kSequence:
        return engine_->Push(sequences_[step.target].handle, Handles(step.reads));
      case StepKind::kDelete:
        engine_->DeleteVariable(
            handles_[step.writes[0]],
            [this, &step](RunContext) { Touch(step.id, -1, {}, step.writes, nullptr); }, step.ctx);
        handles_[step.writes[0]] = nullptr;
        return;
      case StepKind::kWaitToRead:
        Record([&] { engine_->WaitToRead(handles_[step.reads[0]]); });
        return RecordCell(step.reads[0]);
      case StepKind::kWaitForVar:
        Record([&] { engine_->WaitForVar(handles_[step.reads[0]]); });
        return RecordCell(step.reads[0]);
      case StepKind::kWaitForAll:
        return Record([&] { engine_->WaitForAll(); });
      case StepKind::kDrain:
        engine_->Drain(handles_[step.reads[0]]);
        return RecordCell(step.reads[0]);
    }
  }

  void PushAsync(const Step& step, int push_id, std::vector<Sight>* sights,
                 const PushOptions& options) {
    AsyncFn fn = [this, &step, push_id, sights](RunContext ctx, Callback callback) {
      if (step.failure == Failure::kThrow) Fail(step.id);
      if (step.failure == Failure::kDrop) return outside_.Add([callback = std::move(callback)] {});
      if (step.failure == Failure::kReport) {
        return outside_.Add([callback = std::move(callback)]() mutable {
          callback(std::make_exception_ptr(Error(ErrorKind::kData, "reported")));
        });
      }
      const auto work = [this, &step, push_id, sights] {
        Touch(step.id, push_id, step.reads, step.writes, sights);
      };
      FinishOutside(ctx, work, step.id, std::move(callback));
    };
    engine_->PushAsync(std::move(fn), Handles(step.reads), Handles(step.writes), options);
  }

  template <typename Wait>
  void Record(Wait&& wait) {
    std::string message;
    try {
      wait();
    } catch (const Error& error) {
      message = error.what();
    }
    std::lock_guard lock(messages_mutex_);
    messages_.push_back(std::move(message));
  }

  // What the host sees after a wait; with one pushing thread there are no concurrent writes.
  void RecordCell(int cell) {
    if (program_.threads.size() == 1) messages_.push_back(std::to_string(cells_[cell].hash));
  }

  // Deletes while things run, then waits.
  Result Finish() {
    for (OprHandle opr : operators_) engine_->DeleteOperator(opr);
    for (BoundSequence& sequence : sequences_) engine_->DeleteSequence(sequence.handle);
    Record([&] { engine_->WaitForAll(); });
    Result result;
    for (const Cell& cell : cells_) result.hashes.push_back(cell.hash);
    for (VarHandle handle : handles_)
      result.versions.push_back(handle ? engine_->Version(handle) : 0);
    if (program_.threads.size() == 1) result.messages = messages_;
    return result;
  }

  const Program& program_;
  std::vector<Cell> cells_;
  std::vector<VarHandle> handles_;
  std::vector<OprHandle> operators_;
  std::vector<BoundSequence> sequences_;
  std::vector<std::vector<std::vector<Sight>>> sights_;
  size_t stride_ = 0;  // steps of the longest thread
  std::mutex messages_mutex_;
  std::vector<std::string> messages_;
  Outside outside_;
  std::unique_ptr<Engine> engine_;  // destroyed first: waits for users of the rest
};

EngineOptions WithGpus() {
  EngineOptions options;
  options.gpu_count = [] { return kGpus; };
  options.new_stream = [](Context ctx, FnProperty) -> std::unique_ptr<Stream> {
    static std::atomic<uint32_t> streams{0};
    if (ctx.type != DeviceType::kGPU) return nullptr;
    return std::make_unique<test::FakeStream>(++streams, true);
  };
  return options;
}

EngineOptions Naive() {
  EngineOptions options = WithGpus();
  options.type = "naive";
  return options;
}

EngineOptions Threaded(int workers) {
  EngineOptions options = WithGpus();
  options.cpu_workers = workers;
  options.io_workers = workers > 2 ? 2 : 1;
  return options;
}

// ---- Several pushing threads

// A serial order of all pushes consistent with this run: each thread's own order, and per cell the
// order of writes and what readers saw of it. None if these contradict each other.
class SerialOrder {
 public:
  explicit SerialOrder(const Interpreter& run)
      : later_(run.sights().size() * kSteps), missing_(later_.size()) {
    for (size_t thread = 0; thread < run.sights().size(); ++thread) {
      const int first = static_cast<int>(thread) * kSteps;
      for (int step = 0; step + 1 < kSteps; ++step) AddEdge(first + step, first + step + 1);
      for (int step = 0; step < kSteps; ++step) {
        for (const Sight& sight : run.sights()[thread][step])
          AddReader(run.cells()[sight.cell].writers, sight, first + step);
      }
    }
    for (const Cell& cell : run.cells()) {
      for (size_t i = 1; i < cell.writers.size(); ++i)
        AddEdge(cell.writers[i - 1], cell.writers[i]);
    }
  }

  std::optional<std::vector<int>> Find() {
    std::vector<int> order;
    for (size_t i = 0; i < missing_.size(); ++i) {
      if (missing_[i] == 0) order.push_back(static_cast<int>(i));
    }
    for (size_t done = 0; done < order.size(); ++done) {
      for (int next : later_[order[done]]) {
        if (--missing_[next] == 0) order.push_back(next);
      }
    }
    if (order.size() != missing_.size()) return std::nullopt;
    return order;
  }

 private:
  void AddReader(const std::vector<int>& writers, const Sight& sight, int reader) {
    if (sight.writes_before > 0) AddEdge(writers[sight.writes_before - 1], reader);
    if (sight.writes_before < writers.size()) AddEdge(reader, writers[sight.writes_before]);
  }
  void AddEdge(int from, int to) {
    if (from == to) return;  // a sequence that writes a port twice
    later_[from].push_back(to);
    ++missing_[to];
  }
  std::vector<std::vector<int>> later_;
  std::vector<int> missing_;
};

void CheckAgainstNaive(const Program& program, int seed) {
  const Result expected = Interpreter(program, Naive()).Run();
  for (int workers : kWorkerCounts) {
    const Result found = Interpreter(program, Threaded(workers)).Run();
    INFO("program " << seed << ", " << workers << " workers");
    REQUIRE(found.messages == expected.messages);
    REQUIRE(found == expected);
  }
}

void CheckSerialOrder(Program program, int seed) {
  program.operators.clear();  // their pushes cannot be distinguished
  for (auto& steps : program.threads) {
    for (Step& step : steps) {
      if (step.kind == StepKind::kOperator) step.kind = StepKind::kSync;
    }
  }
  for (int workers : kWorkerCounts) {
    INFO("program " << seed << ", " << workers << " workers");
    Interpreter run(program, Threaded(workers));
    const Result found = run.Run();
    const std::optional<std::vector<int>> order = SerialOrder(run).Find();
    REQUIRE(order);
    Program serial = program;
    serial.threads.assign(1, {});
    for (int push : *order)
      serial.threads[0].push_back(program.threads[push / kSteps][push % kSteps]);
    const Result expected = Interpreter(serial, Naive()).Run();
    REQUIRE(found.hashes == expected.hashes);
    REQUIRE(found.versions == expected.versions);
  }
}

}  // namespace

TEST_CASE("random programs give the naive engine's exact result under any number of workers") {
  for (int seed = 0; seed < NumPrograms(); ++seed) CheckAgainstNaive(Generator(seed).Make(1), seed);
}

TEST_CASE("random programs on the CPU and GPUs give the naive engine's exact result") {
  for (int seed = 0; seed < NumPrograms(20); ++seed)
    CheckAgainstNaive(Generator(2'000'000 + seed, 20 + seed % 4 * 25).Make(1), seed);
}

TEST_CASE("pushes from several threads have the result of one serial order") {
  for (int seed = 0; seed < NumPrograms(5); ++seed)
    CheckSerialOrder(Generator(1'000'000 + seed).Make(2 + seed % 2), seed);
}

TEST_CASE("pushes from several threads to the CPU and GPUs have the result of one serial order") {
  for (int seed = 0; seed < NumPrograms(40); ++seed)
    CheckSerialOrder(Generator(3'000'000 + seed, 50).Make(2 + seed % 2), seed);
}

}  // namespace mxtrain::engine
