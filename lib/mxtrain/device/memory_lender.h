// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a backend borrows device memory for itself (a library's workspace, a measurement) from the
// storage that arrays come from: storage counts it, and gives up cached blocks for it.
#include <cstdint>
#include <functional>
#include <memory>

#include "mxtrain/device/backend.h"

namespace mxtrain {

// Both may be called from any thread.
struct MemoryLender {
  // `who` names the holder. Throws kMemory if the device is full.
  std::function<void*(Context, int64_t bytes, const char* who)> lend;
  std::function<void(Context, void*, int64_t bytes)> take_back;
};

// Borrowed memory; the destructor returns it.
class MXTRAIN_API Loan {
 public:
  Loan(std::shared_ptr<const MemoryLender> lender, Context ctx, int64_t bytes, const char* who);
  ~Loan();
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  void* get() const { return data_; }

 private:
  const std::shared_ptr<const MemoryLender> lender_;
  const Context ctx_;
  const int64_t bytes_;
  void* const data_;
};

// Base of a backend that borrows. The lender outlives the backend's streams and all loans.
class MXTRAIN_API Borrower {
 public:
  virtual ~Borrower() = default;
  // Before any other use.
  void BorrowFrom(std::shared_ptr<const MemoryLender> lender) { lender_ = std::move(lender); }
  // Null if none was given.
  const std::shared_ptr<const MemoryLender>& lender() const { return lender_; }

 private:
  std::shared_ptr<const MemoryLender> lender_;
};

// That of the backend; for one without, a lender of the backend's own memory.
MXTRAIN_API std::shared_ptr<const MemoryLender> LenderOf(Backend& backend);

}  // namespace mxtrain
