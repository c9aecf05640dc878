#include "mxtrain/executor/captured_kernels.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain::executor {
namespace {

constexpr size_t kMostTakes = 4;  // inputs lie in two sets of arrays in turn

}  // namespace

CapturedKernels::CapturedKernels(KernelSet& kernels, std::vector<int> ids) : kernels_(kernels), ids_(std::move(ids)) {
  captures_ = std::none_of(ids_.begin(), ids_.end(), [&](int k) { return kernels_.DrawsRandomNumbers(k); });
}

void CapturedKernels::Run(RunContext ctx) {
  if (!captures_ || kernels_.monitored()) return RunEach(ctx);
  Take* take = Find();
  if (!take) return RunEach(ctx);  // the first run makes what libraries make when they are first asked
  if (!take->graph) take->graph = Capture(ctx);
  if (!take->graph) return RunEach(ctx);
  ctx.stream->Replay(*take->graph);
}

CapturedKernels::Take* CapturedKernels::Find() {
  const auto found = std::find_if(takes_.begin(), takes_.end(), [&](const Take& take) { return take.addresses == kernels_.addresses(); });
  if (found == takes_.end()) {
    if (takes_.size() == kMostTakes) takes_.pop_back();
    takes_.insert(takes_.begin(), Take{kernels_.addresses(), nullptr});
    return nullptr;
  }
  std::rotate(takes_.begin(), found, found + 1);
  return &takes_.front();
}

void CapturedKernels::RunEach(RunContext ctx) {
  for (int k : ids_) {
    try {
      kernels_.Run(k, ctx);
    } catch (...) {
      RethrowWithPrefix(std::current_exception(), kernels_[k].name);
    }
  }
}

// What fails while it is captured is done without, and fails there if it is at fault itself.
std::unique_ptr<CapturedGraph> CapturedKernels::Capture(RunContext ctx) {
  std::unique_ptr<CapturedGraph> graph;
  if (ctx.stream->BeginCapture()) {
    bool whole = true;
    try {
      RunEach(ctx);
    } catch (const Error&) {
      whole = false;
    }
    graph = ctx.stream->EndCapture();
    if (!whole) graph.reset();
  }
  captures_ = graph != nullptr;
  return graph;
}

}  // namespace mxtrain::executor
