// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/internal/error_ledger.h"

#include <algorithm>
#include <string>

#include "mxtrain/base/error.h"

namespace mxtrain::engine {

std::exception_ptr NameError(std::exception_ptr error, std::string_view name) {
  try {
    RethrowWithPrefix(std::move(error),
                      name.empty() ? std::string("engine function") : std::string(name));
  } catch (...) {
    return std::current_exception();
  }
}

namespace {

std::exception_ptr WithCount(const std::exception_ptr& error, size_t more) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return std::make_exception_ptr(
        Error(e.kind(), format("{} (and {})", e.what(), Counted(more, "more error"))));
  }
}

}  // namespace

void ErrorLedger::Enter(const std::exception_ptr& error, uint64_t order) {
  MutexLock lock(mutex_);
  unthrown_.emplace(order, error);
}

bool ErrorLedger::StrikeOut(const std::exception_ptr& error) {
  MutexLock lock(mutex_);
  return std::erase_if(unthrown_, [&](const auto& entry) { return entry.second == error; }) > 0;
}

bool ErrorLedger::Holds(const std::exception_ptr& error) const {
  MutexLock lock(mutex_);
  return std::any_of(unthrown_.begin(), unthrown_.end(),
                     [&](const auto& entry) { return entry.second == error; });
}

std::exception_ptr ErrorLedger::TakeFirstAndClear() {
  MutexLock lock(mutex_);
  std::exception_ptr first = unthrown_.empty() ? nullptr : unthrown_.begin()->second;
  if (unthrown_.size() > 1) first = WithCount(first, unthrown_.size() - 1);
  unthrown_.clear();
  return first;
}

}  // namespace mxtrain::engine
