// SPDX-License-Identifier: Apache-2.0
#pragma once
// NCCL, loaded on first use: a machine with one GPU does not need it.
#include <nccl.h>

#include "mxtrain/base/error.h"

namespace mxtrain::cuda {

// Its functions, named without the prefix.
struct Nccl {
  decltype(&ncclGetVersion) GetVersion = nullptr;
  decltype(&ncclGetErrorString) GetErrorString = nullptr;
  decltype(&ncclGetLastError) GetLastError = nullptr;
  decltype(&ncclGetUniqueId) GetUniqueId = nullptr;
  decltype(&ncclCommInitAll) CommInitAll = nullptr;
  decltype(&ncclCommInitRankConfig) CommInitRankConfig = nullptr;
  decltype(&ncclCommFinalize) CommFinalize = nullptr;
  decltype(&ncclCommDestroy) CommDestroy = nullptr;
  decltype(&ncclCommAbort) CommAbort = nullptr;
  decltype(&ncclCommGetAsyncError) CommGetAsyncError = nullptr;
  decltype(&ncclGroupStart) GroupStart = nullptr;
  decltype(&ncclGroupEnd) GroupEnd = nullptr;
  decltype(&ncclAllReduce) AllReduce = nullptr;

  // Throws with the call and NCCL's text.
  void Check(ncclResult_t status, const char* call, ErrorKind kind = ErrorKind::kDevice) const;
};

// Null if the library is in none of the places of gpu_library.h, or lacks one of the functions.
// Searches once.
const Nccl* FindNccl();
// As above, but throws kDevice instead of returning null.
const Nccl& RequireNccl();

}  // namespace mxtrain::cuda
