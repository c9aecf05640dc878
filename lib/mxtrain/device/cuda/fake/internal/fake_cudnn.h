// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions of cuDNN's backend on the host, for tests. They demand what the documentation of
// cuDNN 9 demands of each attribute (its type, its count, that descriptors are finalized before
// they are used and live as long as what was made from them), answer failures with cuDNN's
// statuses, and note each one that the caller is to blame for. Plans compute by plain loops over
// host memory.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/device/cuda/internal/cudnn_graph.h"

namespace mxtrain::cuda::test {

// An engine as a heuristic proposes it.
struct FakeEngine {
  int64_t index = 0;
  std::vector<std::pair<cudnnBackendKnobType_t, int64_t>> knobs;
  std::vector<cudnnBackendNumericalNote_t> notes;
  std::vector<cudnnBackendBehaviorNote_t> behavior;
  int64_t workspace = 0;                           // bytes, all of which its runs overwrite
  cudnnStatus_t finalized = CUDNN_STATUS_SUCCESS;  // of its plan
  cudnnStatus_t executed = CUDNN_STATUS_SUCCESS;
};

// One at a time; its functions are those of the living one. For one thread.
class FakeCudnn {
 public:
  FakeCudnn();
  ~FakeCudnn();
  FakeCudnn(const FakeCudnn&) = delete;
  FakeCudnn& operator=(const FakeCudnn&) = delete;

  const CudnnBackend& functions() const { return functions_; }
  cudnnHandle_t handle() { return reinterpret_cast<cudnnHandle_t>(this); }

  // What the caller is given. Without engines for a mode its heuristic fails.
  std::map<cudnnBackendHeurMode_t, std::vector<FakeEngine>> engines;
  // The call of this number fails with kInjected, counting from the first; -1: none.
  static constexpr cudnnStatus_t kInjected = CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  int64_t fail_at = -1;

  // What the caller did.
  int64_t calls = 0;  // that may fail
  int64_t created = 0, destroyed = 0;
  std::vector<int64_t> executed;      // indices of engines
  std::vector<std::string> problems;  // that are the caller's fault

  struct Object;  // a descriptor

 private:
  CudnnBackend functions_;
};

}  // namespace mxtrain::cuda::test
