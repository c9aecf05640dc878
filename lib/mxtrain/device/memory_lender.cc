// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/memory_lender.h"

#include "mxtrain/base/error.h"

namespace mxtrain {

Loan::Loan(std::shared_ptr<const MemoryLender> lender, Context ctx, int64_t bytes, const char* who)
    : lender_(std::move(lender)), ctx_(ctx), bytes_(bytes), data_(lender_->lend(ctx, bytes, who)) {}

Loan::~Loan() {
  lender_->take_back(ctx_, data_, bytes_);
}

std::shared_ptr<const MemoryLender> LenderOf(Backend& backend) {
  const auto* borrower = dynamic_cast<Borrower*>(&backend);
  if (borrower && borrower->lender()) return borrower->lender();
  return std::make_shared<MemoryLender>(
      MemoryLender{[&backend](Context ctx, int64_t bytes, const char* who) {
                     void* data = backend.Allocate(ctx, bytes);
                     if (!data && bytes > 0)
                       Throw(ErrorKind::kMemory, "{} has no {} for '{}'", ctx.ToString(),
                             FormatBytes(bytes), who);
                     return data;
                   },
                   [&backend](Context ctx, void* data, int64_t) { backend.Free(ctx, data); }});
}

}  // namespace mxtrain
