// SPDX-License-Identifier: Apache-2.0
#pragma once
// One push of a function, and one wait: the claims of the threaded engine that are not part of a
// sequence.
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <variant>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/engine/engine.h"
#include "mxtrain/engine/internal/threaded_var.h"
#include "mxtrain/engine/internal/work.h"

namespace mxtrain::engine {

class ThreadedEngine;

// An operator: kept until it is deleted and none of its pushes is pending.
struct ThreadedOpr : Opr {
  AsyncFn fn;
  std::vector<VarHandle> reads;
  std::vector<VarHandle> writes;
  std::vector<VarHandle> renews;
  PushOptions options;  // renews: those above
  WorkerPool* pool = nullptr;
  std::atomic<int> uses{1};  // the owner's, plus one per pending push
};

// Pooled; all members are set by the push and reset at completion. Members that grants touch come
// first and close together: with a long backlog every grant is a cache miss.
struct alignas(128) Task : Claim {
  // An array of `count` links, valid until the next call.
  Link* MakeLinks(int count) {
    num_links = count;
    if (count <= static_cast<int>(few_links.size())) return links = few_links.data();
    if (count > static_cast<int>(many_links.size())) many_links.resize(count);
    return links = many_links.data();
  }

  std::array<Link, 4> few_links;
  Link* links = nullptr;
  int num_links = 0;

  Context ctx;
  const char* name = "";
  // Empty when `opr` has it, or when there is nothing to run.
  std::variant<std::monostate, Fn, AsyncFn> function;
  ThreadedOpr* opr = nullptr;
  ThreadedEngine* engine = nullptr;

  bool parked = false;  // of a deletion that frees something: delayed by device work

  FailureRef outcome;  // what the written variables will keep

  // An asynchronous function ends when its body has returned and its callback was called; the
  // second of the two completes it. What either reported:
  std::atomic<int> open_ends{0};
  std::exception_ptr body_error, callback_error;
  int64_t begin_ns = -1;  // of a traced asynchronous function

  std::vector<Link> many_links;
  Task* next_free = nullptr;  // FreeList's
};

// On the stack of the waiting thread.
struct Waiter : Claim {
  Link link;
  Mutex mutex;
  ConditionVariable changed;
  bool takes = true;  // the failure of the variable
  FailureRef taken MXTRAIN_GUARDED_BY(mutex);
  bool done MXTRAIN_GUARDED_BY(mutex) = false;
};

}  // namespace mxtrain::engine
