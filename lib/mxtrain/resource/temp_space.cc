// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/resource/temp_space.h"

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/resource/resource_manager.h"

namespace mxtrain {

TempSpace::~TempSpace() {
  manager_.storage_.Free(block_);
}

void* TempSpace::Get(int64_t bytes, const char* who) {
  if (bytes < 0)
    Throw(ErrorKind::kBug, "{}: {} bytes of temporary space were requested", who, bytes);
  if (bytes == 0) return nullptr;
  if (bytes > block_.bytes) {
    Release();
    block_ = manager_.storage_.Alloc(on_.ctx, bytes, format("temporary space of {}", who).c_str());
    manager_.CountSize(*this, bytes);
  }
  return block_.ptr;
}

void TempSpace::Release() {
  if (!block_.ptr) return;
  if (on_.stream) {
    const std::unique_ptr<Event> event = on_.stream->NewEvent();
    on_.stream->Record(*event);
    event->Wait();
  }
  manager_.storage_.Free(std::exchange(block_, {}));
  manager_.CountSize(*this, 0);
}

void GiveBack::operator()(TempSpace* space) const {
  space->manager_.Return(*space);
}

}  // namespace mxtrain
