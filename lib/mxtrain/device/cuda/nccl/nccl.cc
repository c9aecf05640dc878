// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/internal/nccl.h"

#include <dlfcn.h>

#include <optional>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cuda/internal/nccl_version.h"
#include "mxtrain/device/gpu_library.h"

namespace mxtrain::cuda {
namespace {

constexpr const char* kFile = "libnccl.so.2";

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

std::optional<Nccl> Open() {
  void* library = OpenCudaLibrary(kFile);
  if (!library) return std::nullopt;
  Nccl nccl;
  const bool whole = Find(library, "ncclGetVersion", &nccl.GetVersion) &&
                     Find(library, "ncclGetErrorString", &nccl.GetErrorString) &&
                     Find(library, "ncclGetLastError", &nccl.GetLastError) &&
                     Find(library, "ncclGetUniqueId", &nccl.GetUniqueId) &&
                     Find(library, "ncclCommInitAll", &nccl.CommInitAll) &&
                     Find(library, "ncclCommInitRankConfig", &nccl.CommInitRankConfig) &&
                     Find(library, "ncclCommFinalize", &nccl.CommFinalize) &&
                     Find(library, "ncclCommDestroy", &nccl.CommDestroy) &&
                     Find(library, "ncclCommAbort", &nccl.CommAbort) &&
                     Find(library, "ncclCommGetAsyncError", &nccl.CommGetAsyncError) &&
                     Find(library, "ncclGroupStart", &nccl.GroupStart) &&
                     Find(library, "ncclGroupEnd", &nccl.GroupEnd) &&
                     Find(library, "ncclAllReduce", &nccl.AllReduce);
  return whole ? std::optional(nccl) : std::nullopt;
}

}  // namespace

const Nccl* FindNccl() {
  static const std::optional<Nccl> nccl = Open();
  return nccl ? &*nccl : nullptr;
}

const Nccl& RequireNccl() {
  if (const Nccl* nccl = FindNccl()) return *nccl;
  Throw(ErrorKind::kDevice,
        "several GPUs need NCCL 2.14 or later, but {} was not found; install it, or add its folder "
        "to MXTRAIN_CUDA_PATH, or use "
        "kvstore.type=local, which is slower",
        kFile);
}

void Nccl::Check(ncclResult_t status, const char* call, ErrorKind kind) const {
  if (status == ncclSuccess) return;
  const char* detail = GetLastError(nullptr);
  const bool more = detail && detail[0];
  Throw(kind, "{} failed: {}{}{}", call, GetErrorString(status), more ? ": " : "",
        more ? detail : "");
}

std::string NcclVersion() {
  const Nccl* nccl = FindNccl();
  if (!nccl) return "not found";
  int number = 0;  // 2.28.9 is 22809
  nccl->Check(nccl->GetVersion(&number), "ncclGetVersion");
  return format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

}  // namespace mxtrain::cuda
