// SPDX-License-Identifier: Apache-2.0
#include "app/commands/run_start.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "app/commands/pretrained.h"
#include "app/commands/resumed_run.h"
#include "app/commands/trained_files.h"
#include "app/config/document.h"
#include "app/report/list_item.h"
#include "app/report/output.h"
#include "app/session/plugin_trust.h"
#include "app/session/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/json.h"
#include "mxtrain/train/model.h"

namespace mxtrain::commands {
namespace {

// The run that CONFIG belongs to: the folder itself, or the one whose config.yaml it is; "" for any
// other file.
std::string RunOf(const std::string& config) {
  namespace fs = std::filesystem;
  if (fs::is_directory(config)) return FollowLink(config);
  if (fs::path(config).filename() != "config.yaml") return "";
  const std::string folder = fs::path(config).parent_path().string(),
                    run = FollowLink(folder.empty() ? "." : folder);
  return report::IsRunFolder(run) ? run : "";
}

void RefuseCheckpoint(const std::string& config) {
  if (!IsCheckpoint(config)) return;
  const std::string run = config::RunOfCheckpoint(config);
  Throw(ErrorKind::kConfig,
        "{} is a checkpoint, not a configuration; give its run folder: mxtrain train {} --resume",
        config, run.empty() ? "RUN" : report::QuoteShell(run));
}

std::string CompleteText(const session::Session& session, const report::RunFolder& folder,
                         const Trainer& trainer) {
  TrainState state;
  if (!NothingSaved(folder.checkpoints()))
    state = CheckpointFolder(folder.checkpoints()).PeekLastState();
  if (!state.ended_early) {
    return format("the run is complete after {} steps; use --extend to train longer",
                  trainer.total_steps());
  }
  return format(
      "the run is complete after {} steps: it stopped early (train.early_stop), after "
      "{} of {} epochs; --extend train.early_stop=0 trains longer",
      state.step, state.epoch, session.config().train.epochs);
}

// Empty if the run was killed before it wrote them.
std::string CommandsOf(const report::RunFolder& folder) {
  const std::string file = folder.File("command.txt");
  return std::filesystem::exists(file) ? ReadFile(file) : "";
}

// NAME=VALUE lines: the build, the machine, and the environment variables that are read.
std::string Environment(session::Session& session) {
  utsname system{};
  uname(&system);
  std::string text = format("system={} {} {}\nhost={}\n", system.sysname, system.release,
                            system.machine, system.nodename);
  for (const auto& [name, value] : BuildFacts()) text += format("{}={}\n", name, value);
  const int workers = session.runtime().options().cpu_workers;
  text += format("device={}\nthreads={}\ncpu_workers={}\n", session.DeviceNames(),
                 session.runtime().backend(session.ctx()).threads() * workers, workers);
  for (const char* name :
       {"OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "NO_COLOR", "TERM", "TMPDIR"}) {
    if (const char* value = std::getenv(name)) text += format("{}={}\n", name, value);
  }
  return text;
}

// By its position and all of its arrays.
std::string IdentityOf(const Checkpoint& checkpoint) {
  const TrainState& s = checkpoint.state;
  std::string text =
      format("{} {} {} {} {} {} {} {} {}\n{}\n{}\n", s.step, s.epoch, s.step_in_epoch,
             s.first_epoch, s.first_step, s.unfrozen_step, s.random_step, s.random_calls, s.seed,
             s.schedule_state, s.early_stop_state);
  for (const auto* arrays : {&checkpoint.args, &checkpoint.auxs, &checkpoint.optimizer,
                             &checkpoint.averages, &checkpoint.residuals, &checkpoint.carried}) {
    std::vector<std::string> names;
    for (const auto& [name, array] : *arrays) names.push_back(name);
    text += BaseChecksum(*arrays, names) + "\n";
  }
  return text;
}

}  // namespace

void RunFlags::Check(bool dry_run, bool profile) const {
  const auto refuse = [](bool wrong, const char* text) {
    if (wrong) Throw(ErrorKind::kUsage, "{}", text);
  };
  refuse(
      resume && !resume_from.empty(),
      "--resume continues in the run's own folder, --resume-from in a new one; give one of them");
  refuse(dry_run && (resume || extend || !resume_from.empty()),
         "--dry-run starts a new run; remove --resume, --resume-from and --extend");
  refuse(or_begin && !resume && !(extend && resume_from.empty()),
         "--or-begin needs --resume or --extend");
  refuse(overwrite && out.empty() && !profile,
         "--overwrite needs --out DIR, the folder to replace, or --profile FILE");
  refuse(overwrite && (resume || (extend && resume_from.empty())),
         "--overwrite starts a new run, --resume and --extend continue one; give one of them");
  if (const char* why = config::WhyNoRunName(name))
    Throw(ErrorKind::kUsage, "--name: invalid run name: {}", why);
  refuse(!name.empty() && !out.empty(),
         "--out is the run folder itself, --name names a new one in runs/; give one of them");
}

NamedTexts RunFlags::Values() const {
  const auto given = [](bool flag) { return flag ? "given" : "not given"; };
  return {{"--extend", given(extend)},
          {"--or-begin", given(or_begin)},
          {"--resume", given(resume)},
          {"--resume-from", resume_from},
          {"--overwrite", given(overwrite)},
          {"--out", out},
          {"--name", name}};
}

bool NothingSaved(const std::string& checkpoints) {
  if (!std::filesystem::is_directory(checkpoints)) return true;
  const std::filesystem::directory_iterator files(checkpoints);
  return std::all_of(begin(files), end(files), [](const auto& entry) {
    return entry.path().string().find(".tmp-") != std::string::npos;
  });
}

void RunStart::Find(const std::string& config) {
  config_ = config;
  RefuseCheckpoint(config);
  if (flags_.extend && flags_.resume_from.empty()) flags_.resume = true;
  if (flags_.resume && flags_.out.empty() && flags_.name.empty()) flags_.out = RunOf(config);
}

void RunStart::Agree(const session::Session& session, console::Console& console) {
  const std::string name = NameOf(session);
  distributed_.Together([&] {
    if (!distributed_.first()) return;
    if (flags_.or_begin && !HasRun(name)) {
      console.Message(LogLevel::kInfo, "there is no such run yet; starting a new one");
      flags_.resume = flags_.extend = false;
    }
    if (distributed_.group() && flags_.resume) flags_.out = ResumedFolder(name).path();
  });
  if (!distributed_.group()) return;
  const Json agreed = Json::parse(distributed_.group()->BroadcastText(report::JsonText(
      {{"resume", flags_.resume}, {"extend", flags_.extend}, {"out", flags_.out}})));
  flags_.resume = agreed.at("resume");
  flags_.extend = agreed.at("extend");
  flags_.out = agreed.at("out");
}

// The epoch with which the configuration's epochs begin, as RunProgress has it.
int64_t RunStart::FirstEpochOf(const TrainState& state, bool limited) const {
  if (!flags_.extend || !state.all_steps_made()) return state.first_epoch;
  // It may have been stopped between the last step and the end of the epoch.
  const bool between = !limited && state.step == state.total_steps && state.step_in_epoch > 0;
  return state.epoch + (between ? 1 : 0);
}

ModelInfo RunStart::Before(session::Session* session) {
  ModelInfo before;
  if (!flags_.resume_from.empty()) {
    before = PeekModel(flags_.resume_from);
    session->BeginAt(
        FirstEpochOf(PeekState(flags_.resume_from), session->config().train.max_steps > 0));
  } else if (flags_.resume) {
    const std::string checkpoints = ResumedCheckpoints(NameOf(*session));
    if (!NothingSaved(checkpoints)) {
      before = CheckpointFolder(checkpoints).PeekLast();
      session->BeginAt(FirstEpochOf(CheckpointFolder(checkpoints).PeekLastState(),
                                    session->config().train.max_steps > 0));
    }
  }
  if (!before.config.empty()) {
    session::RequirePluginsNamed(session::PluginsOf(before.config), session->config().plugins,
                                 flags_.resume_from.empty() ? "the run" : flags_.resume_from);
    if (flags_.resume && !flags_.extend) CountEpochs(session);
  }
  session->KeepFindings(before.pipeline);
  return before;
}

void RunStart::RequireCreatable() const {
  report::RunFolder::RequireCreatable("runs", flags_.out, flags_.overwrite);
}

void RunStart::TakeValues(session::Session& session, Trainer* trainer, console::Console& console) {
  if (!flags_.resume_from.empty()) {
    const Checkpoint checkpoint = LoadCheckpoint(session.runtime(), flags_.resume_from);
    checkpoint_ = IdentityOf(checkpoint);
    RequireSameNet(*trainer, checkpoint, flags_.resume_from);
    TellDifferences(session, checkpoint.model.config, epochs_before_, console);
    TakeBase(session, trainer, console);
    trainer->Resume(checkpoint, flags_.extend);
  } else if (!flags_.resume) {
    TakePretrained(session, trainer, console);
    TellIfRun(console);
  }
}

report::RunFolder RunStart::Open(session::Session& session) {
  const std::string name = NameOf(session);
  if (flags_.resume) return ResumedFolder(name);
  made_folder_ = flags_.out.empty() || !std::filesystem::exists(flags_.out);
  report::RunFolder folder = report::RunFolder::Create("runs", name, flags_.out, flags_.overwrite,
                                                       config::ToYaml(session.loaded().resolved));
  Record(session, folder, "");
  return folder;
}

void RunStart::Enter(session::Session& session, const report::RunFolder& folder, Trainer* trainer,
                     console::Console& console) {
  trainer->SaveTo(folder.checkpoints());
  // A start that was killed left no configuration; without it the log would belong to no run.
  const bool has_begun = std::filesystem::exists(folder.File("config.yaml"));
  if (has_begun) console.LogTo(folder.File("mxtrain.log"));
  console.Message(LogLevel::kInfo, format("run folder: {}", folder.path()));
  if (flags_.resume) Resume(session, folder.path(), trainer, console);
  if (trainer->finished() && has_begun) {
    console.Message(LogLevel::kInfo, CompleteText(session, folder, *trainer));
    return;
  }
  if (flags_.resume) {
    folder.Write("config.yaml", config::ToYaml(session.loaded().resolved));
    Record(session, folder, CommandsOf(folder));
    if (!has_begun) console.LogTo(folder.File("mxtrain.log"));
  }
}

void RunStart::Resume(session::Session& session, const std::string& run, Trainer* trainer,
                      console::Console& console) {
  const std::string checkpoints = run + "/checkpoints";
  std::vector<std::string> warnings;
  if (NothingSaved(checkpoints)) {
    if (flags_.extend && !flags_.or_begin) {
      Throw(ErrorKind::kUsage,
            "{} was stopped before its first save, so there is nothing to extend; --resume "
            "starts it again",
            run);
    }
    console.Message(LogLevel::kWarning,
                    format("{} was stopped before its first save; starting it again", run));
    TakePretrained(session, trainer, console);
    if (distributed_.first()) RemoveAbandonedFiles(checkpoints);
    return;
  }
  const Checkpoint checkpoint =
      CheckpointFolder(checkpoints).LoadLast(session.runtime(), &warnings);
  checkpoint_ = IdentityOf(checkpoint);
  for (const std::string& text : warnings) console.Message(LogLevel::kWarning, text);
  RequireSameRun(session, *trainer, checkpoint, run);
  TellDifferences(session, checkpoint.model.config, epochs_before_, console);
  const TrainState& state = checkpoint.state;
  const bool unfinished = flags_.extend && flags_.or_begin && !state.all_steps_made();
  if (unfinished) {
    console.Message(LogLevel::kInfo,
                    format("{} has made {} of {} steps; continuing it before it is extended", run,
                           state.step, state.total_steps));
  }
  TakeBase(session, trainer, console);
  trainer->Resume(checkpoint, flags_.extend && !unfinished);
  // If `last` is damaged, a temporary file may be the only checkpoint: keep it until the next
  // save.
  if (warnings.empty() && distributed_.first()) RemoveAbandonedFiles(checkpoints);
}

void RunStart::KeepTrainedFiles(session::Session& session, const report::RunFolder& folder,
                                const Trainer& trainer, console::Console& console) const {
  if (!session.HoldsOut()) return;
  TrainedFiles trained = TrainedFiles::OfRun(
      flags_.resume_from.empty() ? folder.path() : config::RunOfCheckpoint(flags_.resume_from));
  const std::shared_ptr<const io::Source> val = session.OpenSource(true);
  const std::vector<std::string> both = trained.In(*val, session.RootOf(true));
  if (!both.empty()) {
    console.Message(LogLevel::kWarning,
                    format("the run was trained on {} of the {} validation examples before files "
                           "were added or removed, so their metrics, and `best`, are "
                           "too good ({})",
                           both.size(), val->size(), FirstOf(both, 3)));
  }
  if (trainer.finished()) return;
  trained.Add(TrainedFiles::Of(*session.OpenSource(false), session.RootOf(false)));
  if (!trained.empty()) trained.Save(folder);
}

std::string RunStart::NameOf(const session::Session& session) const {
  return flags_.name.empty() ? session.config().name : flags_.name;
}

// Whether the run for --resume exists.
bool RunStart::HasRun(const std::string& name) const {
  return flags_.out.empty() ? report::RunFolder::Has("runs", name)
                            : report::IsRunFolder(flags_.out);
}

report::RunFolder RunStart::ResumedFolder(const std::string& name) const {
  return flags_.out.empty() ? report::RunFolder::Newest("runs", name)
                            : report::RunFolder::OpenRun(flags_.out);
}

// Only the first process locks the folder.
std::string RunStart::ResumedCheckpoints(const std::string& name) const {
  return distributed_.first() ? ResumedFolder(name).checkpoints() : flags_.out + "/checkpoints";
}

// `--resume train.epochs=N` on the command line means N epochs of the run in all, also if it was
// extended.
void RunStart::CountEpochs(session::Session* session) {
  const config::Place place = session->loaded().PlaceOf("train.epochs");
  if (session->diagnostics().sources().Where(place) != "command line") return;
  const CheckpointFolder checkpoints(ResumedCheckpoints(NameOf(*session)));
  epochs_before_ = checkpoints.PeekLastState().first_epoch;
  if (epochs_before_ > 0) session->CountEpochsFrom(epochs_before_);
}

// A run folder stands for its configuration.
void RunStart::TellIfRun(console::Console& console) const {
  const std::string run = RunOf(config_);
  if (run.empty()) return;
  console.Message(LogLevel::kInfo,
                  format("a new run with the configuration of {0}; to continue that run: mxtrain "
                         "train {0} --resume",
                         report::QuoteShell(run)));
}

// Writes environment and command line; `before`: earlier commands of the run.
void RunStart::Record(session::Session& session, const report::RunFolder& folder,
                      const std::string& before) const {
  folder.Write("origin.txt",
               config::OriginText(session.loaded().origins, session.diagnostics().sources()));
  folder.Write("command.txt", before + command_line_ + "\n");
  folder.Write("env.txt", Environment(session));
}

}  // namespace mxtrain::commands
