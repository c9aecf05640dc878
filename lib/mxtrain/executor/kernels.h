// SPDX-License-Identifier: Apache-2.0
#pragma once
// The runnable nodes of a planned graph: an Operator, views of its arrays, and where the bytes of
// each view come from.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/executor/freeze.h"
#include "mxtrain/executor/memory_plan.h"
#include "mxtrain/ndarray/device_times.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain::executor {

// The state that precomputed parameters must have before a run.
struct Precomputation {
  uint64_t version = 0;  // of the parameters
  uint64_t number = 0;   // of the push that computes it
};

// Which of the nets that draw under a name this is, by the stream of the name (namesakes.h).
using Namesakes = std::map<uint64_t, int>;

// What every kernel of an executor reads while it runs.
struct StepState {
  int replica = 0;      // of the executor; fixed
  Namesakes namesakes;  // of its nodes that draw, 0 if not there; fixed
  RandomState random;
  Precomputation precomputation;
  // Empty: this step is not monitored.
  std::function<void(const std::string& output_name, const TBlob& value)> monitor;
};

// One runnable node.
struct Kernel {
  int node = -1;
  std::string name;
  std::shared_ptr<Operator> op;  // null for reorders and zero fills
  std::vector<TBlob> out_grad, in, out, aux, saved, in_grad;
  std::vector<OpReqType> req;  // of out or in_grad
  std::vector<Resource> requested;
  TBlob workspace;
  // float64; not empty: it runs in stages, with these sums over all parts of the batch.
  NDArray sums;
  bool sums_given = false;  // a second run, with the sums of the first
};

// The sums over all parts of a batch that a step exchanges if the batch is divided.
struct ExchangedSums {
  int64_t arrays = 0, bytes = 0;
};
MXTRAIN_API ExchangedSums SumsOfStep(const ExecGraph& graph);

// Of a run of a kernel (operator/batch_sums.h).
enum class Stage : uint8_t { kWhole, kSum, kContinue };

// Owns the kernels of one executor. Views point into the arenas or into external buffers, with one
// base address each, which may change between steps, while no kernel runs.
class MXTRAIN_API KernelSet {
 public:
  // `external_of` maps a buffer to the number of its external buffer; `state` must outlive the set.
  // Throws kConfig for a divided batch and a kernel that cannot take part of one.
  KernelSet(const ExecGraph& graph, const MemoryPlan& plan, const std::vector<int>& external_of,
            Runtime& runtime, bool is_train, const StepState& state, bool divided_batch = false);

  int size() const { return static_cast<int>(kernels_.size()); }
  const Kernel& operator[](int k) const { return *kernels_[k]; }
  const Access& access(int k) const { return accesses_[k]; }

  void SetArena(void* base, int arena = 0);
  void SetExternal(int external, void* data);
  // Draws random numbers.
  bool Draws(int k) const;
  // For those of these kernels of one device that draw: writes the random state of this run to the
  // memory of their GPU and counts them. On the thread that issues their work.
  void PrepareDraws(std::span<const int> ks, RunContext ctx);
  // After PrepareDraws.
  void Issue(int k, RunContext ctx);
  // Both.
  void Run(int k, RunContext ctx);
  // The stages of a kernel with sums.
  void RunStage(int k, RunContext ctx, Stage stage);

  // Of the arenas, then of the external buffers: everything a run reads or writes.
  const std::vector<void*>& addresses() const { return addresses_; }
  // Issues the same device work in every run at these addresses: takes no space of unknown size.
  bool Repeats(int k) const;
  bool monitored() const { return static_cast<bool>(state_.monitor); }  // this run is monitored
  bool timed() const { return times_.on(); }  // the device time of each kernel is measured

 private:
  struct Slot {
    TBlob* view;
    int64_t offset;
  };
  // The random state in the memory of a GPU whose kernels draw. Written in the order of its stream,
  // so it changes when the kernels of earlier runs are done.
  struct DeviceRandom {
    NDArray bytes;
    std::optional<RandomState> written;  // last; used by the thread that issues the work
  };
  enum class Use { kRead, kWrite, kReadWrite };
  class Views;
  void AddNode(int id);
  std::shared_ptr<Operator> OperatorOf(int id);
  void PlaceView(TBlob* view, int buffer);
  void Touch(NodeEntry entry, Use use);
  int64_t TouchScratch(int buffer);
  void AddWorkspace(Kernel* kernel);
  void AddResources(Kernel* kernel);
  void AddSums(Kernel* kernel);
  void Compute(const Kernel& kernel, const OpContext& ctx, Stage stage);
  const RandomState* RandomOn(Context ctx);
  void IssueWork(int k, RunContext run_ctx, Stage stage);
  TBlob OnHost(const TBlob& view, RunContext run_ctx, std::vector<char>* bytes) const;
  void Report(const Kernel& kernel, RunContext run_ctx) const;

  const ExecGraph& graph_;
  const MemoryPlan& plan_;
  const std::vector<int>& external_of_;
  Runtime& runtime_;
  const bool is_train_, divided_batch_;
  const StepState& state_;
  DeviceTimes& times_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<Access> accesses_;
  std::vector<std::shared_ptr<Operator>> operators_;  // [forward node]: serves forward and backward
  std::map<int, NDArray> forward_sums_;               // by forward node
  std::vector<std::vector<Slot>> arena_slots_;        // [arena]
  std::vector<std::vector<Slot>> external_slots_;
  std::vector<void*> addresses_;
  struct TempSlot {
    Resource* resource;
    int64_t offset;
    int arena;
  };
  std::vector<TempSlot> temp_slots_;
  std::map<Context, DeviceRandom> random_on_;  // by GPU
  // Several devices or workers compute at once; the monitor sees one result at a time.
  mutable Mutex report_mutex_;
};

}  // namespace mxtrain::executor
