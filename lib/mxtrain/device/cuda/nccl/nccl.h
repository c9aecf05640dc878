#pragma once
// NCCL, which is opened when it is first needed: a machine with one GPU does without.
#include <nccl.h>

namespace mxtrain::cuda {

// Its functions, by their names without the prefix.
struct Nccl {
  decltype(&ncclGetVersion) GetVersion = nullptr;
  decltype(&ncclGetErrorString) GetErrorString = nullptr;
  decltype(&ncclGetLastError) GetLastError = nullptr;
  decltype(&ncclCommInitAll) CommInitAll = nullptr;
  decltype(&ncclCommDestroy) CommDestroy = nullptr;
  decltype(&ncclGroupStart) GroupStart = nullptr;
  decltype(&ncclGroupEnd) GroupEnd = nullptr;
  decltype(&ncclAllReduce) AllReduce = nullptr;

  // Throws kDevice with the call and NCCL's text.
  void Check(ncclResult_t status, const char* call) const;
};

// Null where the library is in none of the places of gpu_library.h, or lacks one of the functions. Looks once.
const Nccl* FindNccl();
// Throws kDevice in its place.
const Nccl& RequireNccl();

}  // namespace mxtrain::cuda
