// SPDX-License-Identifier: Apache-2.0
#include "app/commands/distributed_run.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "app/commands/exit_codes.h"
#include "app/config/differences.h"
#include "app/report/list_item.h"
#include "mxtrain/base/error.h"
#include "mxtrain/device/cpu/cpu_count.h"

namespace mxtrain::commands {
namespace {

constexpr std::chrono::seconds kTimeForReport{10};

// MPI's end waits for every process, and one that hangs would hold all. The thread ends with the
// program.
void EndAfter(double seconds) {
  std::thread([seconds] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    std::cerr << format(
        "error: a process does not end for {} s (train.kvstore.timeout); this one does\n", seconds);
    std::cout.flush();
    std::_Exit(static_cast<int>(kRankLost));
  }).detach();
}

// ": train.optimizer.lr is 0.1 instead of 0.05", of a rank and the first.
std::string KeysThatDiffer(const std::string& first, const std::string& other) {
  constexpr size_t kMost = 3;
  std::vector<std::string> texts;
  for (const config::Difference& d : config::Compare(config::FlattenText("rank 0", first),
                                                     config::FlattenText("the rank", other))) {
    const auto text = [](const std::string& value) {
      return value.empty() ? std::string("not set") : report::ListItem(value);
    };
    texts.push_back(format("{} is {} instead of {}", d.name, text(d.right), text(d.left)));
  }
  return texts.empty() ? "" : ": " + FirstOf(texts, kMost);
}

}  // namespace

void DistributedRun::Find(CommonFlags* flags, console::ConsoleOptions* console) {
  launch_ = FindLaunch();
  if (launch_ && launch_->size == 1) launch_.reset();
  if (!launch_) return;
  ShareCpus(launch_->local_size, launch_->bound);
  flags->local_rank = launch_->local_rank;
  if (first()) return;
  flags->json = false;
  console->follower = format("rank {}: ", launch_->rank);
}

void DistributedRun::Join(const config::KVStoreConfig& kvstore) {
  const bool wanted = kvstore.between_processes();
  if (!launch_ || kvstore.type.empty()) return;  // empty: invalid, which is reported with the rest
  if (!wanted) {
    Throw(ErrorKind::kUsage,
          "{} started {} processes, but kvstore '{}' is for one, whose workers sum their gradients "
          "there: they would all train the same net; give --kvstore dist_sync, or with GPUs "
          "dist_device_sync (train.kvstore.type), or "
          "start one process",
          launch_->launcher, launch_->size, kvstore.type);
  }
  ProcessGroup::Options options;
  timeout_seconds_ = options.timeout_seconds = static_cast<double>(kvstore.timeout.seconds);
  Open(options);
  Together([] {});  // not so for ranks that failed before they got here
}

void DistributedRun::Together(const std::function<void()>& work) {
  if (!group_) return work();
  std::exception_ptr error;
  std::string failure;
  try {
    work();
  } catch (...) {
    error = std::current_exception();
    failure = format("{} {}", ExitCodeOf(error), WhatOf(error));
  }
  const std::vector<std::string> failures = group_->GatherText(failure);
  const auto failed = std::find_if(failures.begin(), failures.end(),
                                   [](const std::string& text) { return !text.empty(); });
  if (failed == failures.end()) return;
  // They leave the group at their end: a launcher kills the others when the first process has
  // ended.
  AgreeToEnd();
  if (error && (first() || failure != failures[0])) std::rethrow_exception(error);
  const int code = std::stoi(*failed);
  throw SharedError(ErrorKind{code}, format("rank {} ended with exit code {} before the run began",
                                            failed - failures.begin(), code));
}

void DistributedRun::Open(ProcessGroup::Options options) {
  *leaving_ = true;
  mpi_ = Mpi::kOpening;
  options.stop = &StopFlag();
  group_ = std::make_shared<ProcessGroup>([mpi = launch_->mpi] { return OpenMpi(mpi); }, options);
  mpi_ = Mpi::kOpened;
  if (group_->size() == launch_->size) return;
  Throw(ErrorKind::kDevice,
        "{} started {} processes, but {} sees {}: it is another MPI than the launcher's",
        launch_->launcher, launch_->size, group_->transport(), group_->size());
}

// Joins for as long as it takes to fail together. Also where all fail alike, and none waits.
void DistributedRun::TellFailure(int exit_code) noexcept {
  try {
    ProcessGroup::Options options;
    options.timeout_seconds = 60;
    Open(options);
    group_->GatherText(format("{} before it joined", exit_code));
    group_->Close();
  } catch (const std::exception&) {  // the failure has been reported
  }
  group_.reset();
}

void DistributedRun::RequireEqual(const NamedTexts& values) {
  for (const auto& [what, value] : values)
    RequireEqualText(what, value, [](const std::string&, const std::string&) { return ""; });
}

void DistributedRun::RequireEqualConfig(const std::string& config) {
  RequireEqualText("configuration", config, KeysThatDiffer);
}

void DistributedRun::RequireEqualText(
    const std::string& what, const std::string& value,
    const std::function<std::string(const std::string&, const std::string&)>& difference) {
  if (!group_) return;
  const std::vector<std::string> all = group_->GatherText(value);
  for (size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    AgreeToEnd();
    throw SharedError(
        ErrorKind::kConfig,
        format("rank {} has another {} than rank 0{}; all processes need the same, and a file "
               "system that they share",
               r, what, difference(all[0], all[r])));
  }
}

int DistributedRun::End(int exit_code) {
  if (launch_ && mpi_ == Mpi::kNone && exit_code != 0) TellFailure(exit_code);
  if (mpi_ == Mpi::kOpening) {
    // The group's lane may still be in MPI.
    std::cout.flush();
    std::_Exit(exit_code);
  }
  if (!group_) return exit_code;
  if (exit_code == 0 || agreed_to_end_) {
    if (timeout_seconds_ > 0) EndAfter(timeout_seconds_);
    group_->Close();
  } else {
    // Gradients overflow on all ranks, each of which ends for itself; the first has a report to
    // write.
    if (exit_code == static_cast<int>(ErrorKind::kDiverged) && !first())
      std::this_thread::sleep_for(kTimeForReport);
    group_->Abort(exit_code);
  }
  group_.reset();
  return exit_code;
}

}  // namespace mxtrain::commands
