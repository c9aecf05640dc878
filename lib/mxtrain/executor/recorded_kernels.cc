#include "mxtrain/executor/recorded_kernels.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain::executor {
namespace {

constexpr size_t kMostTakes = 4;  // inputs lie in two sets of arrays in turn

}  // namespace

RecordedKernels::RecordedKernels(KernelSet& kernels, std::vector<int> ids) : kernels_(kernels), ids_(std::move(ids)) {
  records_ = std::none_of(ids_.begin(), ids_.end(), [&](int k) { return kernels_.DrawsRandomNumbers(k); });
}

void RecordedKernels::Run(RunContext ctx) {
  if (!records_ || kernels_.monitored()) return RunEach(ctx);
  Take* take = Find();
  if (!take) return RunEach(ctx);  // the first run makes what libraries make when they are first asked
  if (!take->recording) take->recording = Record(ctx);
  if (!take->recording) return RunEach(ctx);
  ctx.stream->Replay(*take->recording);
}

RecordedKernels::Take* RecordedKernels::Find() {
  const auto found = std::find_if(takes_.begin(), takes_.end(), [&](const Take& take) { return take.addresses == kernels_.addresses(); });
  if (found == takes_.end()) {
    if (takes_.size() == kMostTakes) takes_.pop_back();
    takes_.insert(takes_.begin(), Take{kernels_.addresses(), nullptr});
    return nullptr;
  }
  std::rotate(takes_.begin(), found, found + 1);
  return &takes_.front();
}

void RecordedKernels::RunEach(RunContext ctx) {
  for (int k : ids_) {
    try {
      kernels_.Run(k, ctx);
    } catch (...) {
      RethrowWithPrefix(std::current_exception(), kernels_[k].name);
    }
  }
}

// What fails while it is recorded is done without, and fails there if it is at fault itself.
std::unique_ptr<Recording> RecordedKernels::Record(RunContext ctx) {
  std::unique_ptr<Recording> recording;
  if (ctx.stream->BeginRecording()) {
    bool whole = true;
    try {
      RunEach(ctx);
    } catch (const Error&) {
      whole = false;
    }
    recording = ctx.stream->EndRecording();
    if (!whole) recording.reset();
  }
  records_ = recording != nullptr;
  return recording;
}

}  // namespace mxtrain::executor
