// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recursion that is as deep as the data is large, seen at once: by default stacks are so large that
// small frames of 10^5 calls fit.
#include <doctest/doctest.h>
#include <pthread.h>

#include <functional>

namespace mxtrain::test {

// Runs `work` on a thread with a stack of 1 MiB, and waits for its end. Checks within are counted
// as elsewhere; `work` may not throw, so it uses CHECK, not REQUIRE.
inline void OnSmallStack(std::function<void()> work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{1} << 20);
  const auto run = [](void* function) -> void* {
    (*static_cast<std::function<void()>*>(function))();
    return nullptr;
  };
  pthread_t thread;
  const int failed = pthread_create(&thread, &attributes, run, &work);
  pthread_attr_destroy(&attributes);
  REQUIRE(failed == 0);
  pthread_join(thread, nullptr);
}

}  // namespace mxtrain::test
