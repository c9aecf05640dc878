#pragma once
// Book of the failures that no wait has thrown yet. Every failure is entered once, by the function that failed; variables carry copies of
// its exception_ptr. A wait on a variable strikes the failure out; WaitForAll takes the first in push order and clears everything by a new
// epoch: an error that a variable got in an earlier epoch no longer counts. All methods may be called from any thread.
#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <string_view>

namespace mxtrain::engine {

// The error as an Error whose message begins with "NAME: ".
std::exception_ptr NameError(std::exception_ptr error, std::string_view name);

class ErrorLedger {
 public:
  // `order` is the failed function's place among all pushes.
  void Enter(const std::exception_ptr& error, uint64_t order);
  void StrikeOut(const std::exception_ptr& error);
  // The failure of the earliest push that no wait has thrown, with the number of the others behind its message, or null; clears the book
  // and begins a new epoch.
  std::exception_ptr TakeFirstAndClear();
  // Whether no wait has thrown it yet.
  bool Holds(const std::exception_ptr& error) const;

  uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, std::exception_ptr> unthrown_;  // guarded by mutex_; by order
  std::atomic<uint64_t> epoch_{0};
};

// The error that a variable carries, with the epoch in which it got it. The first error stays until a wait takes it. Guarded by the owner.
class KeptError {
 public:
  void Keep(const std::exception_ptr& error, const ErrorLedger& ledger) {
    if (!error_ || epoch_ != ledger.epoch()) {
      error_ = error;
      epoch_ = ledger.epoch();
    }
  }
  // Null when there is none.
  std::exception_ptr Get(const ErrorLedger& ledger) const { return any() && epoch_ == ledger.epoch() ? error_ : nullptr; }
  std::exception_ptr Take(const ErrorLedger& ledger) {
    std::exception_ptr taken = Get(ledger);
    error_ = nullptr;
    return taken;
  }
  // Forgets an error that some wait has thrown.
  void Renew(const ErrorLedger& ledger) {
    if (any() && !ledger.Holds(error_)) error_ = nullptr;
  }
  bool any() const { return static_cast<bool>(error_); }

 private:
  std::exception_ptr error_;
  uint64_t epoch_ = 0;
};

}  // namespace mxtrain::engine
