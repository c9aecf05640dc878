// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/resource.h"

#include <utility>

#include "mxtrain/base/error.h"

namespace mxtrain {

void* Resource::Check(int64_t wanted) const {
  if (type != ResourceRequest::kTempSpace)
    Throw(
        ErrorKind::kBug,
        "{}: GetSpace of a resource that was requested for random numbers; request kTempSpace too",
        who);
  if (growing) return growing->Get(wanted, who);
  if (bytes == ResourceRequest::kUnknownSize)
    Throw(ErrorKind::kBug, "{}: GetSpace outside of Forward and Backward; call it there", who);
  if (wanted < 0 || wanted > bytes) {
    Throw(ErrorKind::kBug,
          "{}: GetSpace of {} bytes, but {} were requested; request as many as are used, or "
          "kUnknownSize",
          who, wanted, bytes);
  }
  return space;
}

// They may be copies of resources that hold another grant's spaces.
ResourceGrant::ResourceGrant(std::span<Resource> requested) : requested_(requested) {
  for (Resource& resource : requested_) resource.growing = nullptr;
}

// Delegates: if a space cannot be taken, the destructor gives back those before it.
ResourceGrant::ResourceGrant(ResourceManager& manager, RunContext ctx,
                             std::span<Resource> requested)
    : ResourceGrant(requested) {
  for (Resource& resource : requested_) {
    if (resource.type == ResourceRequest::kTempSpace &&
        resource.bytes == ResourceRequest::kUnknownSize)
      resource.growing = manager.TakeSpace(ctx).release();
  }
}

ResourceGrant::~ResourceGrant() {
  for (Resource& resource : requested_) {
    if (resource.growing)
      SpaceLease(static_cast<TempSpace*>(std::exchange(resource.growing, nullptr)));
  }
}

}  // namespace mxtrain
