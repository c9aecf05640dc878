// SPDX-License-Identifier: Apache-2.0
// Scopes on a runtime whose calls are here: which contexts they create, and what they restore.
#include "mxtrain/device/cuda/internal/device_scope.h"

#include <doctest/doctest.h>

#include <set>
#include <thread>

namespace {

thread_local int current = 0;
std::set<int> contexts;  // used by one thread at a time

}  // namespace

extern "C" cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
// As since CUDA 12.
extern "C" cudaError_t CUDARTAPI cudaSetDevice(int device) {
  if (device > 3) return cudaErrorInvalidDevice;
  current = device;
  contexts.insert(device);
  return cudaSuccess;
}

namespace mxtrain::cuda {

bool HasContext(int device) {
  return contexts.contains(device);
}
void ThrowFailed(cudaError_t, const char* call) {
  throw Error(ErrorKind::kDevice, call);
}

namespace {

template <typename F>
void OnNewThread(const F& f) {
  std::thread(f).join();
}

TEST_CASE("a thread that works for one device creates no context on another") {
  contexts.clear();
  OnNewThread([] {
    {
      const DeviceScope scope(2);
      CHECK(current == 2);
      const DeviceScope again(2);
    }
    CHECK(current == 2);  // device 0 has no context to go back to
    OnDevice(2, [] { CHECK(current == 2); });
  });
  CHECK(contexts == std::set{2});
}

TEST_CASE("the device of a thread is restored where it has a context") {
  contexts.clear();
  OnNewThread([] {
    cudaSetDevice(1);
    {
      const DeviceScope scope(3);
      {
        const DeviceScope inner(0);
        CHECK(current == 0);
      }
      CHECK(current == 3);
    }
    CHECK(current == 1);
  });
  OnNewThread([] {
    { const DeviceScope scope(3); }
    CHECK(current == 0);  // by now it has one
  });
  CHECK(contexts == std::set{0, 1, 3});
}

TEST_CASE("a device that fails") {
  contexts.clear();
  OnNewThread([] {
    CHECK_THROWS_AS(DeviceScope(7), Error);
    OnDevice(7, [] { FAIL("not on this device"); });
    CHECK(current == 0);
  });
  CHECK(contexts.empty());
}

}  // namespace
}  // namespace mxtrain::cuda
