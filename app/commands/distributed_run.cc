// SPDX-License-Identifier: Apache-2.0
#include "app/commands/distributed_run.h"

#include <unistd.h>

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cpu/cpu_count.h"

namespace mxtrain::commands {
namespace {

// Compute threads of a process beside others on its machine. A launcher that binds processes to
// cores has shared them out already.
int ThreadsOfRank(int local_size) {
  const int cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1, std::min(UsableCpuCount(), cpus / local_size));
}

}  // namespace

void DistributedRun::Find(CommonFlags* flags, report::ConsoleOptions* console) {
  launch_ = FindLaunch();
  if (launch_ && launch_->size == 1) launch_.reset();
  if (!launch_) return;
  if (flags->threads == 0 && launch_->local_size > 1)
    flags->threads = ThreadsOfRank(launch_->local_size);
  if (first()) return;
  flags->json = false;
  console->follower = format("rank {}: ", launch_->rank);
}

void DistributedRun::Join(const config::KVStoreConfig& kvstore) {
  const bool wanted = kvstore.type == "dist_sync";
  if (!launch_ || kvstore.type.empty()) return;  // empty: invalid, which is reported with the rest
  if (!wanted) {
    Throw(ErrorKind::kUsage,
          "{} started {} processes, but kvstore '{}' is for one: they would all train the same "
          "net; give --kvstore dist_sync (train.kvstore.type), or start one process",
          launch_->launcher, launch_->size, kvstore.type);
  }
  ProcessGroup::Options options;
  options.timeout_seconds = static_cast<double>(kvstore.timeout.seconds);
  options.stop = &StopFlag();
  *leaving_ = true;
  group_ = std::make_shared<ProcessGroup>([mpi = launch_->mpi] { return OpenMpi(mpi); }, options);
  if (group_->size() == launch_->size) return;
  Throw(ErrorKind::kDevice,
        "{} started {} processes, but {} sees {}: it is another MPI than the launcher's",
        launch_->launcher, launch_->size, group_->transport(), group_->size());
}

void DistributedRun::RequireEqual(
    const std::vector<std::pair<std::string, std::string>>& values) const {
  if (!group_) return;
  for (const auto& [what, value] : values) {
    const std::vector<std::string> all = group_->GatherText(value);
    for (size_t r = 1; r < all.size(); ++r) {
      if (all[r] == all[0]) continue;
      Throw(ErrorKind::kConfig,
            "rank {} has another {} than rank 0; all processes need the same, and a file system "
            "that they share",
            r, what);
    }
  }
}

int DistributedRun::End(int exit_code) {
  if (!group_) return exit_code;
  const bool failed =
      exit_code != 0 && exit_code < 128 && exit_code != static_cast<int>(ErrorKind::kCheckFailed);
  if (failed) group_->Abort(exit_code);
  if (!failed) group_->Close();
  group_.reset();
  return exit_code;
}

}  // namespace mxtrain::commands
