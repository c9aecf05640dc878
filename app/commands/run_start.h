// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a run of `train` starts: in a new folder, or in that of a run which it continues; with which
// values; and what its folder says of the start.
#include <cstdint>
#include <string>
#include <utility>

#include "app/commands/distributed_run.h"
#include "app/console/console.h"
#include "app/report/run_folder.h"
#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain::session {
class Session;
}

namespace mxtrain::commands {

// The flags that choose the run.
struct RunFlags {
  bool resume = false, extend = false, or_begin = false, overwrite = false;
  std::string resume_from, out, name;

  // Throws kUsage for flags that contradict each other or would have no effect. `dry_run`: another
  // one, which writes nothing; `profile`: another, whose file --overwrite replaces, too.
  void Check(bool dry_run, bool profile) const;
  NamedTexts Values() const;  // as they were given, by the names of the flags
};

// Whether there is no checkpoint, intact or damaged; incomplete files do not count.
bool NothingSaved(const std::string& checkpoints);

// Calls go in the order of the declarations. In a distributed run every process makes them, but for
// Open, Enter and KeepTrainedFiles: the first one alone has the folder.
class RunStart {
 public:
  // `command_line`: as command.txt shows it. `distributed` must outlive this.
  RunStart(std::string command_line, DistributedRun& distributed)
      : command_line_(std::move(command_line)), distributed_(distributed) {}

  RunFlags& flags() { return flags_; }

  // The configuration's file, which may be a run that is continued. Throws kConfig for a
  // checkpoint.
  void Find(const std::string& config);
  // Decides whether a run is continued, and which: what depends on the folder of runs is decided by
  // the first process.
  void Agree(const session::Session& session, console::Console& console);
  // Before the net is built: the model of the run that is continued, for choices made once per run:
  // the value of `data.batch_size: auto`, and kernels. The session gets that run's epochs and draw
  // of held-out examples. Empty for a new run, or if nothing was saved. Throws kConfig if it has
  // plug-ins that the configuration does not name.
  ModelInfo Before(session::Session* session);
  // Throws kFileSystem if Open would refuse a new folder, as far as can be told without writing.
  void RequireCreatable() const;
  // The initial values of a new run: those of a checkpoint or of train.weights. A run that is
  // resumed in its own folder takes them in Enter or Resume.
  void TakeValues(session::Session& session, Trainer* trainer, console::Console& console);
  // The run's own folder if it is resumed, else a new one.
  report::RunFolder Open(session::Session& session);
  bool made_folder() const { return made_folder_; }  // Open has found none
  // From here on the run writes into its folder; continues the run if it is resumed there.
  void Enter(session::Session& session, const report::RunFolder& folder, Trainer* trainer,
             console::Console& console);
  // Of a process that does not enter the folder `run`.
  void Resume(session::Session& session, const std::string& run, Trainer* trainer,
              console::Console& console);
  // Identifies the checkpoint that the run continues, by all that it holds; "" for none. Known
  // after TakeValues, Enter and Resume.
  const std::string& checkpoint() const { return checkpoint_; }
  // With held-out data, which may become another part when files are added or removed: says which
  // examples of validation the run has been trained on, and lists those that it will be.
  void KeepTrainedFiles(session::Session& session, const report::RunFolder& folder,
                        const Trainer& trainer, console::Console& console) const;

 private:
  std::string NameOf(const session::Session& session) const;
  bool HasRun(const std::string& name) const;
  report::RunFolder ResumedFolder(const std::string& name) const;
  std::string ResumedCheckpoints(const std::string& name) const;
  int64_t FirstEpochOf(const TrainState& state, bool limited) const;
  void CountEpochs(session::Session* session);
  void TellIfRun(console::Console& console) const;
  void Record(session::Session& session, const report::RunFolder& folder,
              const std::string& before) const;

  const std::string command_line_;
  DistributedRun& distributed_;
  RunFlags flags_;
  std::string config_;
  std::string checkpoint_;
  bool made_folder_ = false;
  int64_t epochs_before_ = 0;  // those before the run was extended, if train.epochs counts them too
};

}  // namespace mxtrain::commands
