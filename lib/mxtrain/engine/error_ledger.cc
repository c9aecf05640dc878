#include "mxtrain/engine/error_ledger.h"

#include <string>

#include "mxtrain/base/error.h"

namespace mxtrain::engine {

std::exception_ptr NameError(std::exception_ptr error, std::string_view name) {
  try {
    RethrowWithPrefix(std::move(error), name.empty() ? std::string("engine function") : std::string(name));
  } catch (...) {
    return std::current_exception();
  }
}

void ErrorLedger::Enter(const std::exception_ptr& error, uint64_t order) {
  std::lock_guard lock(mutex_);
  unthrown_.emplace(order, error);
}

void ErrorLedger::StrikeOut(const std::exception_ptr& error) {
  std::lock_guard lock(mutex_);
  std::erase_if(unthrown_, [&](const auto& entry) { return entry.second == error; });
}

std::exception_ptr ErrorLedger::TakeFirstAndClear() {
  std::lock_guard lock(mutex_);
  std::exception_ptr first = unthrown_.empty() ? nullptr : unthrown_.begin()->second;
  unthrown_.clear();
  epoch_.fetch_add(1, std::memory_order_relaxed);
  return first;
}

}  // namespace mxtrain::engine
