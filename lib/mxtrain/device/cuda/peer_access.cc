// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/internal/peer_access.h"

#include <algorithm>

#include "mxtrain/device/cuda/internal/device_scope.h"

namespace mxtrain::cuda {
namespace {

// Whether kernels and copies of the one reach the memory of the other. A refusal is no failure:
// copies work without.
bool Grant(int of, int other) {
  int possible = 0;
  if (cudaDeviceCanAccessPeer(&possible, of, other) != cudaSuccess || possible == 0) {
    cudaGetLastError();  // clears the error
    return false;
  }
  const DeviceScope scope(of);
  const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
  if (status == cudaSuccess) return true;
  cudaGetLastError();
  return status == cudaErrorPeerAccessAlreadyEnabled;
}

}  // namespace

bool PeerAccess::Between(int a, int b) {
  const MutexLock lock(mutex_);
  const auto [known, fresh] = known_.try_emplace(std::minmax(a, b));
  if (fresh) {
    const bool there = Grant(a, b), back = Grant(b, a);
    known->second = there && back;
  }
  return known->second;
}

}  // namespace mxtrain::cuda
