// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/internal/captured_kernels.h"

#include <algorithm>
#include <iterator>

#include "mxtrain/base/error.h"

namespace mxtrain::executor {
namespace {

constexpr size_t kMaxEntries = 4;  // inputs alternate between two sets of arrays

}  // namespace

CapturedKernels::CapturedKernels(KernelSet& kernels, std::vector<int> ids)
    : kernels_(kernels), ids_(std::move(ids)) {
  std::copy_if(ids_.begin(), ids_.end(), std::back_inserter(drawing_),
               [&](int k) { return kernels_.Draws(k); });
  captures_ = std::all_of(ids_.begin(), ids_.end(), [&](int k) { return kernels_.Repeats(k); });
}

void CapturedKernels::Run(RunContext ctx) {
  kernels_.PrepareDraws(drawing_, ctx);  // outside the capture, which would keep this run's state
  if (!captures_ || kernels_.monitored()) return RunEach(ctx);
  Entry* entry = Find();
  if (!entry) return RunEach(ctx);  // libraries initialize lazily in the first run
  if (!entry->graph) entry->graph = Capture(ctx);
  if (!entry->graph) return RunEach(ctx);
  ctx.stream->Replay(*entry->graph);
}

CapturedKernels::Entry* CapturedKernels::Find() {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.addresses == kernels_.addresses();
  });
  if (found == entries_.end()) {
    if (entries_.size() == kMaxEntries) entries_.pop_back();
    entries_.insert(entries_.begin(), Entry{kernels_.addresses(), nullptr});
    return nullptr;
  }
  std::rotate(entries_.begin(), found, found + 1);
  return &entries_.front();
}

void CapturedKernels::RunEach(RunContext ctx) {
  for (int k : ids_) {
    try {
      kernels_.Issue(k, ctx);
    } catch (...) {
      RethrowWithPrefix(std::current_exception(), kernels_[k].name);
    }
  }
}

// If capturing fails, the kernels run uncaptured and throw their own errors, if any.
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
