// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/internal/failure.h"

#include <string>

#include "mxtrain/base/error.h"

namespace mxtrain::engine {
namespace {

std::exception_ptr WithName(std::exception_ptr error, std::string_view name) {
  try {
    RethrowWithPrefix(std::move(error),
                      name.empty() ? std::string("engine function") : std::string(name));
  } catch (...) {
    return std::current_exception();
  }
}

std::exception_ptr WithCount(const std::exception_ptr& error, size_t more) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return std::make_exception_ptr(
        Error(e.kind(), format("{} (and {})", e.what(), Counted(more, "more error"))));
  }
}

}  // namespace

Failure::Failure(std::exception_ptr thrown, std::string_view name, uint64_t position)
    : error(WithName(std::move(thrown), name)), push(position) {}

void UnthrownFailures::Add(const FailureRef& failure) {
  MutexLock lock(mutex_);
  by_push_.emplace(failure->push, failure);
}

void UnthrownFailures::Remove(const FailureRef& failure, uint64_t next_push) {
  MutexLock lock(mutex_);
  const auto [begin, end] = by_push_.equal_range(failure->push);
  for (auto known = begin; known != end; ++known) {
    if (known->second != failure) continue;
    by_push_.erase(known);
    failure->thrown_at_.store(next_push, std::memory_order_relaxed);
    return;
  }
}

std::exception_ptr UnthrownFailures::RemoveAll(uint64_t next_push) {
  MutexLock lock(mutex_);
  if (by_push_.empty()) return nullptr;
  std::exception_ptr first = by_push_.begin()->second->error;
  if (by_push_.size() > 1) first = WithCount(first, by_push_.size() - 1);
  for (const auto& [push, failure] : by_push_)
    failure->thrown_at_.store(next_push, std::memory_order_relaxed);
  by_push_.clear();
  return first;
}

}  // namespace mxtrain::engine
