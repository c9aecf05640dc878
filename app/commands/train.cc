// SPDX-License-Identifier: Apache-2.0
// mxtrain train CONFIG [key=value ...]

#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <utility>

#include "app/commands/cpu_share.h"
#include "app/commands/device_flag.h"
#include "app/commands/distributed_run.h"
#include "app/commands/label_trial.h"
#include "app/commands/learning_rates.h"
#include "app/commands/plugin_trust.h"
#include "app/commands/pretrained.h"
#include "app/commands/replay.h"
#include "app/commands/run_listeners.h"
#include "app/commands/session.h"
#include "app/commands/train_report.h"
#include "app/commands/trained_files.h"
#include "app/config/differences.h"
#include "app/config/document.h"
#include "app/fetch/remote_file.h"
#include "app/report/html_report.h"
#include "app/report/list_item.h"
#include "app/report/output.h"
#include "app/report/run_folder.h"
#include "app/report/run_plots.h"
#include "app/report/run_summary.h"
#include "app/report/sample_sheet.h"
#include "app/report/showing.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/device/cpu/cpu_count.h"
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

// An error that passes it, of this process alone, ends what was pushed for other processes before
// the trainer waits for it.
class LeaveRanks {
 public:
  explicit LeaveRanks(const DistributedRun& run) : run_(run), before_(std::uncaught_exceptions()) {}
  ~LeaveRanks() {
    if (run_.group() && !run_.agreed_to_end() && std::uncaught_exceptions() > before_)
      run_.group()->Fail("this process ended with an error");
  }
  LeaveRanks(const LeaveRanks&) = delete;
  LeaveRanks& operator=(const LeaveRanks&) = delete;

 private:
  const DistributedRun& run_;
  const int before_;
};

class Train final : public Command {
 public:
  Train(std::string command_line, DistributedRun& distributed)
      : command_line_(std::move(command_line)), distributed_(distributed) {}

  bool RunsInRanks() const override { return true; }

  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("train", "train a net");
    config_.Declare(arguments);
    DeclarePlaces(arguments, &config_.places);
    arguments.Flag("--resume", &resume_,
                   "continue a run from its last checkpoint: the run folder given as CONFIG or "
                   "--out, else the newest run of this name; train.epochs=N then means N in all");
    arguments
        .Option("--resume-from", &resume_from_, "continue from this checkpoint in a new run folder")
        .Takes("FILE");
    arguments.Flag("--extend", &extend_,
                   "train a completed run for train.epochs more: the run that --resume would "
                   "continue, or --resume-from");
    arguments.Flag("--or-begin", &or_begin_,
                   "with --resume or --extend, for nightly jobs: start a new run if there is none "
                   "yet; complete a run that was ended early instead of extending it");
    arguments.Flag("--dry-run", &dry_run_,
                   "do everything up to and including the first step; write nothing");
    arguments.Option("--out", &out_, "run folder; default: the next runs/NAME-0001").Takes("DIR");
    arguments.Option("--name", &name_, "name of the run; overrides the configuration's")
        .Takes("NAME");
    arguments.Flag("--overwrite", &overwrite_, "replace the run in --out");
    arguments
        .Option("--kvstore", &kvstore_,
                "short for train.kvstore.type=TYPE; dist_sync, dist_async, and on GPUs "
                "dist_device_sync: the processes of mpirun or srun train together")
        .Takes("TYPE");
    arguments
        .Option("--profile", &profile_,
                "write a trace of the run, for ui.perfetto.dev or chrome://tracing")
        .Takes("FILE");
    arguments
        .Option("--min-metric", &min_metric_,
                "exit with 9 if the best value of the `best` metric is below this (above it, if "
                "lower is better)")
        .Takes("VALUE");
    arguments.Examples(
        "  mxtrain train configs/mnist/lenet.yaml\n  mxtrain train config.yaml train.epochs=10 "
        "--name longer\n"
        "  mxtrain train runs/longer-0001 --resume\n  mxtrain train config.yaml --extend "
        "train.epochs=5\n"
        "  mxtrain train config.yaml train.time_limit=2h train.early_stop.target=0.95\n"
        "  mpirun -n 4 mxtrain train config.yaml --kvstore dist_sync");
  }

  int Run(const CommonFlags& flags, report::Console& console) override {
    CheckFlags();
    // Training continues if the reader of its output is gone (`2>&1 | head`).
    std::signal(SIGPIPE, SIG_IGN);
    try {
      return RunOnce(flags, console);
    } catch (const fetch::StoppedError& e) {
      console.Message(LogLevel::kInfo, e.what());
      return 128 + StopSignal();
    } catch (const DivergedError& e) {
      console.ShowBar("");
      // A step of several processes cannot be repeated by one.
      if (folder_ && !distributed_.group()) Explain(flags, e, console);
      throw;
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::kData || e.kind() == ErrorKind::kConfig) RemoveUnbegun();
      const bool can_continue = folder_ && report::IsRunFolder(folder_->path());
      if (e.kind() != ErrorKind::kFileSystem || !can_continue) throw;
      Throw(ErrorKind::kFileSystem, "{}; then continue: {}", e.what(), ContinueCommand(*folder_));
    }
  }

 private:
  int RunOnce(const CommonFlags& flags, report::Console& console) {
    RefuseCheckpoint(config_.file);
    if (extend_ && resume_from_.empty()) resume_ = true;
    if (resume_ && out_.empty() && name_.empty()) out_ = RunOf(config_.file);
    CatchSignals();
    if (!kvstore_.empty()) config_.overrides.push_back("train.kvstore.type=" + kvstore_);
    Session session(config_, flags, console);
    distributed_.Join(session.config().train.kvstore);
    distributed_.Together([&] { session.JoinRanks(distributed_.group()); });
    AgreeOnRun(NameOfRun(session), console);
    ModelInfo before;
    std::unique_ptr<DataIter> train, val;
    TrainOptions options;
    distributed_.Together([&] {
      before = ResumedModel(session);
      if (!before.config.empty()) {
        RequirePluginsNamed(PluginsOf(before.config), session.config().plugins,
                            resume_from_.empty() ? "the run" : resume_from_);
      }
      if (resume_ && !extend_ && !before.config.empty()) CountEpochs(&session);
      session.KeepDraw(before.pipeline);
      session.BuildNet(before.batch_size);
      train = session.TrainIter();
      val = session.ValIter();
      options = session.MakeTrainOptions();
      session.CacheFeatures(&options);
      options.model.kernel_choices = before.kernel_choices;
    });
    distributed_.RequireEqual({{"program", VersionText()},
                               {"configuration", options.model.config},
                               {"training data", options.model.train_data},
                               {"validation data", options.model.val_data}});
    options.measure_kernels = options.measure_kernels && !dry_run_;
    if (flags.deterministic)
      console.Message(LogLevel::kDebug, "all kernels of this build are bit-reproducible");
    Describe(session, console);
    // Weights saved without a step: no loss looks at the labels.
    if (session.config().train.epochs == 0 && before.config.empty() && !LabelsFit(&session))
      return 128 + StopSignal();
    if (dry_run_) return DryRun(session, options, *train, val.get(), console);

    // Do what may fail before creating the run folder: `--resume` and `runs/latest` must not find
    // an empty one.
    Trainer trainer(session.runtime(), options, *train, val.get());
    const LeaveRanks leave(distributed_);
    CheckMinMetric(trainer);
    if (session.config().train.amp != "off") {
      console.Message(LogLevel::kInfo, format("mixed precision: convolutions and matrix products "
                                              "in {}, weights, statistics and updates in float32",
                                              session.config().train.amp));
    }
    Begin(session, &trainer, console);
    if (!resume_ && resume_from_.empty()) TellIfRun(console);
    if (!distributed_.first()) return Follow(session, &trainer, console);
    // Fail before the run if it cannot be written.
    if (!profile_.empty()) WriteFileAtomically(profile_, "");
    std::optional<report::RunFolder> opened;
    distributed_.Together([&] { opened = OpenFolder(session); });
    const report::RunFolder& folder = *opened;
    if (distributed_.group()) distributed_.group()->BroadcastText(folder.path());
    Enter(session, folder, &trainer, console);
    KeepTrainedFiles(session, folder, trainer, console);
    if (!resume_) SaveFirstBatch(session, folder, *train, console);
    RequireEqualState(&trainer);
    const bool was_finished = trainer.finished();
    RunListeners listeners(folder, val.get(), console);
    const TrainResult result = RunIn(folder, session.runtime(), &trainer, listeners.all(), console);
    distributed_.AgreeToEnd();
    // Before the reports are written.
    const int64_t peak_memory = report::PeakMemoryBytes();
    const Json summary = SummaryOf(folder, result, peak_memory);
    // A run of no steps is complete at once.
    if (!was_finished || !std::filesystem::exists(folder.File("result.json")))
      folder.Write("result.json", report::JsonText(summary, 2) + "\n");
    report::TryToShow(console, "curves", [&] { report::SaveRunPlots(folder.path()); });
    report::TryToShow(console, "the report", [&] { report::WriteHtmlReport(folder.path()); });
    if (flags.json) std::cout << report::JsonText(summary) << std::endl;
    return Report(session, folder, *train, result, peak_memory, console);
  }

  // What cannot be read here cannot be trained on either: no warning that the run continues.
  static void SaveFirstBatch(Session& session, const report::RunFolder& folder, DataIter& train,
                             report::Console& console) {
    std::optional<Error> unreadable;
    report::TryToShow(console, "the first batch", [&] {
      try {
        report::SaveFirstBatch(folder.File("samples"), train,
                               report::ImageReader(session.TrainTransforms()),
                               session.class_names());
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::kData) throw;
        unreadable = e;
      }
    });
    if (unreadable) throw Error(*unreadable);
  }

  // With held-out data, which may become another part when files are added or removed: says which
  // examples of validation the run has been trained on, and lists those that it will be.
  void KeepTrainedFiles(Session& session, const report::RunFolder& folder, const Trainer& trainer,
                        report::Console& console) const {
    if (!session.HoldsOut()) return;
    TrainedFiles trained = TrainedFiles::OfRun(
        resume_from_.empty() ? folder.path() : config::RunOfCheckpoint(resume_from_));
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

  // What depends on the folder of runs is decided by the first process.
  void AgreeOnRun(const std::string& name, report::Console& console) {
    distributed_.Together([&] {
      if (!distributed_.first()) return;
      if (or_begin_ && !HasRun(name)) {
        console.Message(LogLevel::kInfo, "there is no such run yet; starting a new one");
        resume_ = extend_ = false;
      }
      if (distributed_.group() && resume_) out_ = ResumedFolder(name).path();
    });
    if (!distributed_.group()) return;
    const Json agreed = Json::parse(distributed_.group()->BroadcastText(
        report::JsonText({{"resume", resume_}, {"extend", extend_}, {"out", out_}})));
    resume_ = agreed.at("resume");
    extend_ = agreed.at("extend");
    out_ = agreed.at("out");
  }

  // A process of a distributed run other than the first, which alone writes the run folder, but for
  // their logs.
  int Follow(Session& session, Trainer* trainer, report::Console& console) {
    distributed_.Together([] {});  // the first opens the folder
    const ProcessGroup& group = *distributed_.group();
    const std::string run = distributed_.group()->BroadcastText("");
    trainer->SaveTo(run + "/checkpoints");
    console.LogTo(format("{}/mxtrain.rank{}.log", run, group.rank()));
    if (resume_) Resume(session, run, trainer, console);
    RequireEqualState(trainer);
    TrainListener silent;
    const TrainResult result = trainer->Run(silent, &StopFlag());
    distributed_.AgreeToEnd();
    return result.end == RunEnd::kStopped ? 128 + SignalOfStop() : 0;
  }

  // Each process has loaded the state that the run begins with.
  void RequireEqualState(Trainer* trainer) {
    if (!distributed_.group()) return;
    std::string weights, layouts;
    for (const auto& [name, array] : trainer->executor().args()) {
      if (!trainer->executor().grads().contains(name)) continue;
      layouts += format("{} {}\n", name, array.spec().layout.Name());
      const std::vector<float> values = array.ToVector();
      weights.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    }
    distributed_.RequireEqual({{"number of steps", std::to_string(trainer->total_steps())},
                               {"layout of the weights (its CPU is of another kind)", layouts},
                               {"state of the weights", format("{:016x}", Checksum(weights))}});
  }

  // The signal may have reached another process alone.
  static int SignalOfStop() { return StopSignal() ? StopSignal() : SIGTERM; }

  // A run folder stands for its configuration.
  void TellIfRun(report::Console& console) const {
    const std::string run = RunOf(config_.file);
    if (run.empty()) return;
    console.Message(LogLevel::kInfo,
                    format("a new run with the configuration of {0}; to continue that run: mxtrain "
                           "train {0} --resume",
                           report::QuoteShell(run)));
  }

  // The initial values of a new run: those of a checkpoint or of train.weights. A run that is
  // resumed in its own folder takes them later.
  void Begin(Session& session, Trainer* trainer, report::Console& console) const {
    if (!resume_from_.empty()) {
      const Checkpoint checkpoint = LoadCheckpoint(session.runtime(), resume_from_);
      TellDifferences(session, checkpoint.model.config, console);
      trainer->Resume(checkpoint, extend_);
    } else if (!resume_) {
      TakePretrained(session, trainer, console);
    }
  }

  // From here on the run writes into its folder; continues the run if it is resumed there.
  void Enter(Session& session, const report::RunFolder& folder, Trainer* trainer,
             report::Console& console) {
    folder_ = folder;
    threads_ = session.runtime().backend(session.ctx()).threads();
    plugins_ = session.config().plugins;
    trainer->SaveTo(folder.checkpoints());
    // A start that was killed left no configuration; without it the log would belong to no run.
    const bool has_begun = std::filesystem::exists(folder.File("config.yaml"));
    if (has_begun) console.LogTo(folder.File("mxtrain.log"));
    console.Message(LogLevel::kInfo, format("run folder: {}", folder.path()));
    if (resume_) Resume(session, folder.path(), trainer, console);
    if (trainer->finished() && has_begun) {
      console.Message(LogLevel::kInfo, CompleteText(session, folder, *trainer));
      return;
    }
    if (resume_) {
      folder.Write("config.yaml", config::ToYaml(session.loaded().resolved));
      Record(session, folder, CommandsOf(folder));
      if (!has_begun) console.LogTo(folder.File("mxtrain.log"));
    }
    std::filesystem::remove(folder.File("result.json"));  // of the previous segment
  }

  static std::string CompleteText(const Session& session, const report::RunFolder& folder,
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

  // Trains; measures the share of the processor time that this got. The summary of a run that
  // diverges is written here.
  TrainResult RunIn(const report::RunFolder& folder, Runtime& runtime, Trainer* trainer,
                    TrainListener& listener, report::Console& console) {
    if (!profile_.empty()) {
      runtime.engine().StartProfile();
      runtime.ProfileResources();
    }
    const auto begin = std::chrono::steady_clock::now();
    const CpuTimes before_run = ReadCpuTimes();
    TrainResult result;
    try {
      result = trainer->Run(listener, &StopFlag());
    } catch (const DivergedError&) {
      if (distributed_.group() && !distributed_.group()->failed()) distributed_.AgreeToEnd();
      const Json summary = SummaryOf(folder, trainer->result(), report::PeakMemoryBytes());
      folder.Write("result.json", report::JsonText(summary, 2) + "\n");
      throw;
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    given_share_ = GivenShare(before_run, ReadCpuTimes(), seconds, UsableCpuCount());
    console.ShowBar("");
    if (!profile_.empty()) {
      runtime.ProfileResources();
      runtime.engine().StopProfile(profile_);
    }
    return result;
  }

  // Saves what is needed to repeat the failing step, and repeats it at once if that takes only
  // seconds.
  void Explain(const CommonFlags& flags, const DivergedError& error,
               report::Console& console) const {
    constexpr int64_t kStepsAtOnce = 200;
    const std::string bundle = WriteBundle(*folder_, error, threads_);
    const std::string checkpoint = bundle + "/checkpoint";
    const int64_t from = std::filesystem::exists(checkpoint) ? PeekState(checkpoint).step : 0;
    CommonFlags trusting = flags;  // the run's own plug-ins, which a bundle of others may not load
    trusting.plugins.insert(trusting.plugins.end(), plugins_.begin(), plugins_.end());
    if (error.step() - from <= kStepsAtOnce)
      console.Message(LogLevel::kError, Replay(bundle, trusting, console).Text());
    console.Message(LogLevel::kInfo, format("to repeat the failing step: mxtrain replay {}{}",
                                            report::QuoteShell(bundle), PluginFlags(plugins_)));
  }

  // An error of the data or the configuration before the first save leaves no folder that
  // `--resume` would find or that would be in the way of the next try.
  void RemoveUnbegun() {
    if (!folder_ || !is_new_ || distributed_.group() || !NothingSaved(folder_->checkpoints()))
      return;
    const std::string path = folder_->path();
    folder_.reset();
    std::error_code kept;
    std::filesystem::remove_all(path, kept);
  }

  // Rejects flags that contradict each other or would have no effect.
  void CheckFlags() const {
    const auto refuse = [](bool wrong, const char* text) {
      if (wrong) Throw(ErrorKind::kUsage, "{}", text);
    };
    refuse(
        resume_ && !resume_from_.empty(),
        "--resume continues in the run's own folder, --resume-from in a new one; give one of them");
    refuse(dry_run_ && (resume_ || extend_ || !resume_from_.empty()),
           "--dry-run starts a new run; remove --resume, --resume-from and --extend");
    refuse(or_begin_ && !resume_ && !(extend_ && resume_from_.empty()),
           "--or-begin needs --resume or --extend");
    refuse(overwrite_ && out_.empty(), "--overwrite needs --out DIR, the folder to replace");
    refuse(overwrite_ && (resume_ || (extend_ && resume_from_.empty())),
           "--overwrite starts a new run, --resume and --extend continue one; give one of them");
    if (const char* why = config::WhyNoRunName(name_))
      Throw(ErrorKind::kUsage, "--name: invalid run name: {}", why);
    refuse(!name_.empty() && !out_.empty(),
           "--out is the run folder itself, --name names a new one in runs/; give one of them");
  }

  void Describe(Session& session, report::Console& console) {
    std::string threads = Counted(session.runtime().backend(session.ctx()).threads(), "thread");
    const int workers = session.runtime().options().cpu_workers;
    if (workers > 1 && session.ctx().type != DeviceType::kGPU)
      threads = format("{} workers of {} each", workers, threads);
    console.Message(LogLevel::kInfo,
                    format("device {}, {}, seed {}, batch {}", session.DeviceNames(), threads,
                           session.config().seed, session.config().data.batch_size));
    if (const std::shared_ptr<ProcessGroup>& group = distributed_.group()) {
      console.Message(
          LogLevel::kInfo,
          format("{} processes over {}, each with {} examples of a step's {}", group->size(),
                 group->transport(), session.BatchOfRank(), session.BatchOfRank() * group->size()));
    }
    if (!session.class_names().empty())
      console.Message(LogLevel::kInfo, "classes: " + ListOfClasses(session.class_names()));
    TellRates(session, console);
  }

  // "0 cat, 1 dog"; "10, numbered" if the names are numbers.
  static std::string ListOfClasses(const std::vector<std::string>& names) {
    constexpr size_t kMost = 12;
    std::string text;
    bool numbers = true;
    for (size_t i = 0; i < names.size(); ++i) {
      numbers = numbers && names[i] == std::to_string(i);
      if (i < kMost) text += format("{}{} {}", i ? ", " : "", i, report::ListItem(names[i]));
    }
    return numbers ? format("{}, numbered", names.size())
                   : text + (names.size() > kMost ? ", ..." : "");
  }

  // Whether the run for --resume exists.
  bool HasRun(const std::string& name) const {
    return out_.empty() ? report::RunFolder::Has("runs", name) : report::IsRunFolder(out_);
  }

  // Reject an unreachable target before hours of training.
  void CheckMinMetric(const Trainer& trainer) const {
    if (!min_metric_ || *min_metric_ <= 1 || !trainer.HigherIsBetter()) return;
    Throw(ErrorKind::kUsage, "--min-metric {}: {} is at most 1; {} % is {}", *min_metric_,
          trainer.best().metric, *min_metric_, *min_metric_ / 100);
  }

  int DryRun(Session& session, const TrainOptions& options, DataIter& train, DataIter* val,
             report::Console& console) {
    report::RunFolder::RequireCreatable("runs", out_, overwrite_);
    Trainer trainer(session.runtime(), options, train, val);
    const LeaveRanks leave(distributed_);
    TakePretrained(session, &trainer, console);
    trainer.Rehearse();
    console.Message(LogLevel::kInfo,
                    format("dry run passed: training would take {} steps; nothing was written",
                           trainer.total_steps()));
    return 0;
  }

  // The run's own folder if it is resumed.
  report::RunFolder ResumedFolder(const std::string& name) const {
    return out_.empty() ? report::RunFolder::Newest("runs", name)
                        : report::RunFolder::OpenRun(out_);
  }

  // The state of the resumed run, for choices made once per run: the value of `data.batch_size:
  // auto`, and kernels. Empty for a new run, or if nothing was saved.
  ModelInfo ResumedModel(const Session& session) const {
    if (!resume_from_.empty()) return PeekModel(resume_from_);
    if (!resume_) return {};
    const std::string checkpoints = ResumedCheckpoints(NameOfRun(session));
    return NothingSaved(checkpoints) ? ModelInfo() : CheckpointFolder(checkpoints).PeekLast();
  }

  // Only the first process locks the folder.
  std::string ResumedCheckpoints(const std::string& name) const {
    return distributed_.first() ? ResumedFolder(name).checkpoints() : out_ + "/checkpoints";
  }

  // `--resume train.epochs=N` on the command line means N epochs of the run in all, also if it was
  // extended.
  void CountEpochs(Session* session) {
    const config::Place place = session->loaded().PlaceOf("train.epochs");
    if (session->diagnostics().sources().Where(place) != "command line") return;
    const CheckpointFolder checkpoints(ResumedCheckpoints(NameOfRun(*session)));
    epochs_before_ = checkpoints.PeekLastState().first_epoch;
    if (epochs_before_ > 0) session->CountEpochsFrom(epochs_before_);
  }

  std::string NameOfRun(const Session& session) const {
    return name_.empty() ? session.config().name : name_;
  }

  report::RunFolder OpenFolder(Session& session) {
    const std::string name = NameOfRun(session);
    if (resume_) return ResumedFolder(name);
    is_new_ = out_.empty() || !std::filesystem::exists(out_);
    report::RunFolder folder = report::RunFolder::Create("runs", name, out_, overwrite_,
                                                         config::ToYaml(session.loaded().resolved));
    Record(session, folder, "");
    return folder;
  }

  // Empty if the run was killed before it wrote them.
  static std::string CommandsOf(const report::RunFolder& folder) {
    const std::string file = folder.File("command.txt");
    return std::filesystem::exists(file) ? ReadFile(file) : "";
  }

  // Writes environment and command line; `before`: earlier commands of the run.
  void Record(Session& session, const report::RunFolder& folder, const std::string& before) const {
    folder.Write("origin.txt",
                 config::OriginText(session.loaded().origins, session.diagnostics().sources()));
    folder.Write("command.txt", before + command_line_ + "\n");
    folder.Write("env.txt", Environment(session));
  }

  // Warns about each setting that differs in the continued run.
  void TellDifferences(const Session& session, const std::string& config_before,
                       report::Console& console) const {
    for (const auto& [name, before, now] :
         config::Compare(config::FlattenText("the run's configuration", config_before),
                         config::Flatten(session.loaded().resolved))) {
      if (name == "train.epochs" && epochs_before_ > 0) {
        console.Message(
            LogLevel::kWarning,
            format("the run continues with a different train.epochs: {} in all, before {}",
                   epochs_before_ + std::atoll(now.c_str()),
                   epochs_before_ + std::atoll(before.c_str())));
        continue;
      }
      console.Message(LogLevel::kWarning,
                      format("the run continues with a different {}: {}, before {}", name,
                             now.empty() ? "default" : now, before.empty() ? "not set" : before));
    }
  }

  // NAME=VALUE lines: the build, the machine, and the environment variables that are read.
  static std::string Environment(Session& session) {
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

  // Whether there is no checkpoint, intact or damaged; incomplete files do not count.
  static bool NothingSaved(const std::string& checkpoints) {
    if (!std::filesystem::is_directory(checkpoints)) return true;
    const std::filesystem::directory_iterator files(checkpoints);
    return std::all_of(begin(files), end(files), [](const auto& entry) {
      return entry.path().string().find(".tmp-") != std::string::npos;
    });
  }

  void Resume(Session& session, const std::string& run, Trainer* trainer,
              report::Console& console) {
    const std::string checkpoints = run + "/checkpoints";
    std::vector<std::string> warnings;
    if (NothingSaved(checkpoints)) {
      if (extend_ && !or_begin_) {
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
    for (const std::string& text : warnings) console.Message(LogLevel::kWarning, text);
    TellDifferences(session, checkpoint.model.config, console);
    const TrainState& state = checkpoint.state;
    const bool unfinished = extend_ && or_begin_ && !state.all_steps_made();
    if (unfinished) {
      console.Message(LogLevel::kInfo,
                      format("{} has made {} of {} steps; continuing it before it is extended", run,
                             state.step, state.total_steps));
    }
    trainer->Resume(checkpoint, extend_ && !unfinished);
    // If `last` is damaged, a temporary file may be the only checkpoint: keep it until the next
    // save.
    if (warnings.empty() && distributed_.first()) RemoveAbandonedFiles(checkpoints);
  }

  int Report(const Session& session, const report::RunFolder& folder, const DataIter& train,
             const TrainResult& r, int64_t peak_memory, report::Console& console) {
    TellUnread(train, /*validation=*/false, console);
    ReportRun(session.config(), folder, r, peak_memory, given_share_, console);
    console.RepeatWarnings();
    if (r.end == RunEnd::kStopped) return 128 + SignalOfStop();
    const BestValue& first = r.best[0];
    const auto reached = [&](double wanted) {
      return first.value && (r.higher_is_better ? *first.value >= wanted : *first.value <= wanted);
    };
    if (min_metric_ && !reached(*min_metric_)) {
      console.Message(LogLevel::kError,
                      format("the best {} is {}, {} --min-metric {}", first.metric,
                             first.value ? report::FormatNumber(*first.value) : "unknown",
                             r.higher_is_better ? "below" : "above", *min_metric_));
      return static_cast<int>(ErrorKind::kCheckFailed);
    }
    return 0;
  }

  const std::string command_line_;
  DistributedRun& distributed_;
  ConfigArguments config_;
  bool resume_ = false, extend_ = false, or_begin_ = false, dry_run_ = false, overwrite_ = false;
  std::string resume_from_, out_, name_, kvstore_, profile_;
  std::optional<double> min_metric_;
  std::optional<report::RunFolder> folder_;  // of the run, once it exists
  bool is_new_ = false;                      // made by this command
  int64_t epochs_before_ = 0;  // those before the run was extended, if train.epochs counts them too
  int threads_ = 0;            // as the next
  std::vector<std::string> plugins_;  // of the configuration
  double given_share_ = 1;  // of the processor time that the training could have used (cpu_share.h)
};

}  // namespace

std::unique_ptr<Command> MakeTrain(std::string command_line, DistributedRun& distributed) {
  return std::make_unique<Train>(std::move(command_line), distributed);
}

}  // namespace mxtrain::commands
