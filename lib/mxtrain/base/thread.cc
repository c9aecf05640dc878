// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/thread.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace mxtrain {
namespace {

// sched_attr of the kernel; its header contradicts <sched.h>, which has no such call.
struct SchedulingAttributes {
  uint32_t size = 0, policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;
};

}  // namespace

void RunPromptly() {
  prctl(PR_SET_TIMERSLACK, 1);  // nanoseconds; by default 50 microseconds
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;  // as the user wishes
  attributes.runtime = 100'000;                  // nanoseconds of a time slice; the least there is
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace mxtrain
