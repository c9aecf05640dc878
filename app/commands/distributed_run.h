// SPDX-License-Identifier: Apache-2.0
#pragma once
// This process as one of a distributed run: what the launcher says of it, the group of processes
// once it has joined them, and how it leaves them.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/command.h"
#include "app/config/config.h"
#include "mxtrain/device/mpi_library.h"
#include "mxtrain/device/process_group.h"

namespace mxtrain::commands {

// Values by what they are.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// An error that all ranks have alike: the first one says it.
class SharedError : public Error {
 public:
  using Error::Error;
};

class DistributedRun {
 public:
  // `leaving`: set once MPI is opened, which may end the program, as when its launcher is gone.
  explicit DistributedRun(std::atomic<bool>* leaving) : leaving_(leaving) {}

  // Of a command that runs in ranks: looks for a launcher. A process other than the first prints
  // only its errors, and no results.
  void Find(CommonFlags* flags, console::ConsoleOptions* console);

  // Joins the other processes if the configuration asks for it; a process without a launcher is
  // alone, and trains like `local`. Throws kUsage for several processes that would train the same
  // net independently of each other, and SharedError if a rank has failed before it got here.
  void Join(const config::KVStoreConfig& kvstore);
  const std::shared_ptr<ProcessGroup>& group() const { return group_; }  // null: one process
  // Throws SharedError (kConfig) if a rank's value differs from the first one's, naming it, and all
  // have agreed to end. Values by what they are: "training data".
  void RequireEqual(const NamedTexts& values);
  // The same for a resolved configuration (YAML); the error names the keys that differ.
  void RequireEqualConfig(const std::string& config);
  // Work of each rank between two collectives that may fail. If it fails on any, all have
  // agreed to end, and those on which it did not throw SharedError.
  void Together(const std::function<void()>& work);
  bool first() const { return !launch_ || launch_->rank == 0; }

  // All ranks have agreed on the end of the run, whatever their exit codes.
  void AgreeToEnd() { agreed_to_end_ = true; }
  bool agreed_to_end() const { return agreed_to_end_; }
  // The last call: leaves the group, or ends all processes if this one ends alone; one that failed
  // before it joined tells those that wait for it. Returns the exit code.
  int End(int exit_code);

 private:
  void Open(ProcessGroup::Options options);
  // `difference`: of the first rank's value and another one's, to follow in the error; "" for none.
  void RequireEqualText(
      const std::string& what, const std::string& value,
      const std::function<std::string(const std::string&, const std::string&)>& difference);
  void TellFailure(int exit_code) noexcept;

  std::atomic<bool>* const leaving_;
  std::optional<Launch> launch_;  // of several processes
  enum class Mpi : uint8_t { kNone, kOpening, kOpened } mpi_ = Mpi::kNone;
  std::shared_ptr<ProcessGroup> group_;
  double timeout_seconds_ = 0;  // 0: none
  bool agreed_to_end_ = false;
};

}  // namespace mxtrain::commands
