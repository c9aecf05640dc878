// SPDX-License-Identifier: Apache-2.0
// Access between GPUs on a runtime whose calls are here; device_scope_test.cc has the others.
#include "mxtrain/device/cuda/internal/peer_access.h"

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <set>
#include <vector>

namespace {

using Pair = std::pair<int, int>;
std::set<Pair> possible;    // directions
std::vector<Pair> granted;  // in the order of the calls
cudaError_t answer = cudaSuccess;
int cleared = 0;

}  // namespace

extern "C" cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = possible.contains({device, peer}) ? 1 : 0;
  return cudaSuccess;
}
extern "C" cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  CHECK(flags == 0);
  int device = -1;
  cudaGetDevice(&device);
  granted.emplace_back(device, peer);
  return answer;
}
extern "C" cudaError_t CUDARTAPI cudaGetLastError() {
  ++cleared;
  return cudaSuccess;
}

namespace mxtrain::cuda {
namespace {

TEST_CASE("access is asked for in both directions, once, where the machine has it") {
  granted.clear();
  cleared = 0;
  answer = cudaSuccess;
  possible = {{0, 1}, {1, 0}, {0, 2}};
  PeerAccess peers;
  for (int i = 0; i < 2; ++i) {
    CHECK(peers.Between(0, 1));
    CHECK(peers.Between(1, 0));
    CHECK_FALSE(peers.Between(2, 0));  // one direction alone
    CHECK_FALSE(peers.Between(1, 2));
  }
  CHECK(granted == std::vector<Pair>{{0, 1}, {1, 0}, {0, 2}});
}

TEST_CASE("a refusal is no failure and leaves no error; access that exists is access") {
  possible = {{0, 1}, {1, 0}};
  for (const cudaError_t refusal : {cudaErrorPeerAccessAlreadyEnabled, cudaErrorTooManyPeers}) {
    answer = refusal;
    cleared = 0;
    PeerAccess peers;
    CHECK(peers.Between(0, 1) == (refusal == cudaErrorPeerAccessAlreadyEnabled));
    CHECK(cleared == 2);
  }
}

}  // namespace
}  // namespace mxtrain::cuda
