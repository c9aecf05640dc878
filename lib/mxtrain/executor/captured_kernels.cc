// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/internal/captured_kernels.h"

#include <algorithm>
#include <iterator>

#include "mxtrain/base/error.h"
#include "mxtrain/base/log.h"

namespace mxtrain::executor {
namespace {

constexpr size_t kMaxEntries = 4;  // inputs alternate between two sets of arrays

}  // namespace

Captures& CapturesOf(Runtime& runtime) {
  const std::shared_ptr<void> counts =
      runtime.Extension("captures", [] { return std::make_shared<Captures>(); });
  return *static_cast<Captures*>(counts.get());
}

CapturedKernels::CapturedKernels(Runtime& runtime, KernelSet& kernels, std::vector<int> ids)
    : runtime_(runtime), counts_(CapturesOf(runtime)), kernels_(kernels), ids_(std::move(ids)) {
  std::copy_if(ids_.begin(), ids_.end(), std::back_inserter(drawing_),
               [&](int k) { return kernels_.Draws(k); });
  captures_ = std::all_of(ids_.begin(), ids_.end(), [&](int k) { return kernels_.Repeats(k); });
}

void CapturedKernels::Run(RunContext ctx) {
  kernels_.PrepareDraws(drawing_, ctx);  // outside the capture, which would keep this run's state
  // Libraries initialize lazily in the first run.
  Entry* const entry = captures_ && !kernels_.monitored() && !kernels_.timed() ? Find() : nullptr;
  if (entry && !entry->graph) entry->graph = Capture(ctx);
  if (!entry || !entry->graph) {
    ++counts_.uncaptured;
    return RunEach(ctx);
  }
  ++counts_.replays;
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
  std::string why;
  try {
    captures_ = ctx.stream->BeginCapture();
    if (!captures_) return nullptr;
    try {
      RunEach(ctx);
    } catch (const Error& error) {
      why = error.what();
    }
    graph = ctx.stream->EndCapture();
    if (!graph && why.empty()) why = "the device made no graph of them";
  } catch (const Error& error) {
    if (why.empty()) why = error.what();
  }
  if (why.empty()) return graph;
  captures_ = false;
  Refused(ctx, why);
  return nullptr;
}

void CapturedKernels::Refused(RunContext ctx, const std::string& why) {
  const Logger log = runtime_.log("executor");
  const std::string text = format(
      "{} kernels of a step on {} could not be captured as one graph: {}; they are launched one by "
      "one, which costs the host more time",
      ids_.size(), ctx.ctx.ToString(), why);
  if (counts_.failures++ == 0) {
    log.Warning("{}", text);
  } else {
    log.Debug("{}", text);
  }
}

}  // namespace mxtrain::executor
