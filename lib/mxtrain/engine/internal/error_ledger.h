// SPDX-License-Identifier: Apache-2.0
#pragma once
// The failures that no wait has thrown yet. Each is entered once, by the function that failed;
// variables hold copies of its exception_ptr. A wait on a variable removes its failure, WaitForAll
// removes all. All methods may be called from any thread.
#include <cstdint>
#include <exception>
#include <map>
#include <string_view>
#include <utility>

#include "mxtrain/base/mutex.h"

namespace mxtrain::engine {

// The error as an Error whose message begins with "NAME: ".
std::exception_ptr NameError(std::exception_ptr error, std::string_view name);

class ErrorLedger {
 public:
  // `order`: the failed function's position among all pushes.
  void Enter(const std::exception_ptr& error, uint64_t order);
  // Returns whether it was there.
  bool StrikeOut(const std::exception_ptr& error);
  // The failure of the earliest push, with the number of the others appended to its message, or
  // null; removes all.
  std::exception_ptr TakeFirstAndClear();
  // Whether no wait has thrown it yet.
  bool Holds(const std::exception_ptr& error) const;

 private:
  mutable Mutex mutex_;
  std::map<uint64_t, std::exception_ptr> unthrown_ MXTRAIN_GUARDED_BY(mutex_);  // by order
};

// The error a variable carries: the first one, until a wait takes it or the contents are
// overwritten. Guarded by the owner.
class KeptError {
 public:
  void Keep(const std::exception_ptr& error) {
    if (!error_) error_ = error;
  }
  const std::exception_ptr& Get() const { return error_; }  // null when there is none
  std::exception_ptr Take() { return std::exchange(error_, nullptr); }
  // Forgets an error that some wait has thrown.
  void Renew(const ErrorLedger& ledger) {
    if (any() && !ledger.Holds(error_)) error_ = nullptr;
  }
  bool any() const { return static_cast<bool>(error_); }

 private:
  std::exception_ptr error_;
};

}  // namespace mxtrain::engine
