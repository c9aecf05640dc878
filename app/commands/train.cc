// SPDX-License-Identifier: Apache-2.0
// mxtrain train CONFIG [key=value ...]

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <utility>

#include "app/commands/command_list.h"
#include "app/commands/cpu_share.h"
#include "app/commands/distributed_run.h"
#include "app/commands/kvstore_flag.h"
#include "app/commands/label_trial.h"
#include "app/commands/learning_rates.h"
#include "app/commands/pretrained.h"
#include "app/commands/replay.h"
#include "app/commands/run_listeners.h"
#include "app/commands/run_start.h"
#include "app/commands/train_report.h"
#include "app/config/document.h"
#include "app/console/showing.h"
#include "app/fetch/remote_file.h"
#include "app/report/html_report.h"
#include "app/report/list_item.h"
#include "app/report/monitor.h"
#include "app/report/output.h"
#include "app/report/output_path.h"
#include "app/report/process_memory.h"
#include "app/report/run_folder.h"
#include "app/report/run_plots.h"
#include "app/report/run_summary.h"
#include "app/report/sample_sheet.h"
#include "app/session/device_choice.h"
#include "app/session/plugin_trust.h"
#include "app/session/session.h"
#include "app/tasks/first_batch.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/device/cpu/cpu_count.h"

namespace mxtrain::commands {
namespace {

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
      : distributed_(distributed), start_(std::move(command_line), distributed) {}

  bool RunsInRanks() const override { return true; }

  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("train", "train a net");
    config_.Declare(arguments);
    DeclarePlaces(arguments, &config_.places);
    RunFlags& run = start_.flags();
    arguments.Flag("--resume", &run.resume,
                   "continue a run from its last checkpoint: the run folder given as CONFIG or "
                   "--out, else the newest run of this name; train.epochs=N then means N in all");
    arguments
        .Option("--resume-from", &run.resume_from,
                "continue from this checkpoint in a new run folder")
        .Takes("FILE");
    arguments.Flag("--extend", &run.extend,
                   "train a completed run for train.epochs more: the run that --resume would "
                   "continue, or --resume-from");
    arguments.Flag("--or-begin", &run.or_begin,
                   "with --resume or --extend, for nightly jobs: start a new run if there is none "
                   "yet; complete a run that was ended early instead of extending it");
    arguments.Flag("--dry-run", &dry_run_,
                   "do everything up to and including the first step; write nothing");
    arguments.Option("--out", &run.out, "run folder; default: the next runs/NAME-0001")
        .Takes("DIR");
    arguments.Option("--name", &run.name, "name of the run; overrides the configuration's")
        .Takes("NAME");
    arguments.Flag("--overwrite", &run.overwrite,
                   "replace the run in --out, and the file of --profile");
    arguments
        .Option("--features", &features_,
                "with data.cache: features: keep them in this folder, where other runs with the "
                "same frozen layers, weights and images find them")
        .Takes("DIR");
    kvstore_.Declare(arguments);
    arguments
        .Option("--profile", &profile_,
                "write a trace of the run into a new file, for ui.perfetto.dev or chrome://tracing")
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

  int Run(const CommonFlags& flags, console::Console& console) override {
    start_.flags().Check(dry_run_, !profile_.empty());
    report::RequireFree(std::array{profile_}, config_.Files(), start_.flags().overwrite);
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
  int RunOnce(const CommonFlags& flags, console::Console& console) {
    start_.Find(config_.file);
    CatchSignals();
    kvstore_.AddTo(&config_);
    session::Session session(config_, flags, console.log());
    distributed_.Join(session.config().train.kvstore);
    RequireEqualRequests(flags, session);
    distributed_.Together([&] { session.JoinRanks(distributed_.group()); });
    start_.Agree(session, console);
    ModelInfo before;
    std::unique_ptr<DataIter> train, val;
    TrainOptions options;
    distributed_.Together([&] {
      before = start_.Before(&session);
      session.BuildNet(before.batch_size);
      train = session.TrainIter();
      val = session.ValIter();
      options = session.MakeTrainOptions();
      session.CacheFeatures(&options, dry_run_ ? "" : features_);
      options.model.kernel_choices = before.kernel_choices;
    });
    distributed_.RequireEqual(
        {{"list of classes", format("{}", join(options.model.class_names, "\n"))},
         {"training data", options.model.train_data},
         {"validation data", options.model.val_data},
         {"net", options.symbol.ToJson()},
         {"input pipeline", options.model.pipeline}});
    distributed_.RequireEqualConfig(options.model.config);  // with what was found in the data
    options.measure_kernels = options.measure_kernels && !dry_run_;
    const std::shared_ptr<report::MonitorRows> monitor =
        MonitorOf(session.config().train.monitor, &options);
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
    start_.TakeValues(session, &trainer, console);
    if (!start_.flags().resume) RequireEqualState(&trainer);
    if (!distributed_.first()) return Follow(session, &trainer, *train, console);
    // Fail before the run if it cannot be written.
    if (!profile_.empty()) WriteFileAtomically(profile_, "");
    std::optional<report::RunFolder> opened;
    distributed_.Together([&] { opened = start_.Open(session); });
    const report::RunFolder& folder = *opened;
    if (distributed_.group()) distributed_.group()->BroadcastText(folder.path());
    Enter(session, folder, &trainer, console);
    start_.KeepTrainedFiles(session, folder, trainer, console);
    if (start_.flags().resume)
      RequireEqualState(&trainer);
    else
      SaveFirstBatch(session, folder, *train, console);
    const bool was_finished = trainer.finished();
    TrainResult result;
    try {
      RunListeners listeners(folder, examples_, val.get(), monitor, console);
      result = RunIn(folder, session.runtime(), &trainer, listeners.all(), console);
    } catch (const Error& e) {
      // A loss knows the label that it refuses, and not whose it is.
      if (e.kind() == ErrorKind::kData && !distributed_.group()) LabelsFit(&session);
      throw;
    }
    TellUnreadOfOthers(*train, result, console);
    distributed_.AgreeToEnd();
    // Before the reports are written.
    const int64_t peak_memory = report::PeakMemoryBytes();
    const Json summary = SummaryOf(folder, examples_, result, peak_memory);
    // A run of no steps is complete at once.
    if (!was_finished || !std::filesystem::exists(folder.File("result.json")))
      folder.Write("result.json", report::JsonText(summary, 2) + "\n");
    console::TryToShow(console, "curves", [&] { report::SaveRunPlots(folder.path()); });
    console::TryToShow(console, "the report", [&] { report::WriteHtmlReport(folder.path()); });
    if (flags.json) std::cout << report::JsonText(summary) << std::endl;
    return Report(session, folder, *train, result, peak_memory, console);
  }

  // Null without train.monitor. The first process alone watches.
  std::shared_ptr<report::MonitorRows> MonitorOf(const config::MonitorConfig& monitor,
                                                 TrainOptions* options) const {
    if (monitor.pattern.empty() || !distributed_.first()) return nullptr;
    auto rows = std::make_shared<report::MonitorRows>(monitor.statistics);
    options->watch = {monitor.pattern, monitor.every,
                      [rows](int64_t step, const std::string& name, const TBlob& value) {
                        rows->Add(step, name, value);
                      }};
    return rows;
  }

  // What cannot be read here cannot be trained on either: no warning that the run continues.
  static void SaveFirstBatch(session::Session& session, const report::RunFolder& folder,
                             DataIter& train, console::Console& console) {
    std::optional<Error> unreadable;
    console::TryToShow(console, "the first batch", [&] {
      try {
        tasks::SaveFirstBatch(folder.File("samples"), train,
                              report::ImageReader(session.TrainTransforms()), session.Tasks());
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::kData) throw;
        unreadable = e;
      }
    });
    if (unreadable) throw Error(*unreadable);
  }

  // A process of a distributed run other than the first, which alone writes the run folder, but for
  // their logs.
  int Follow(session::Session& session, Trainer* trainer, const DataIter& train,
             console::Console& console) {
    distributed_.Together([] {});  // the first opens the folder
    const ProcessGroup& group = *distributed_.group();
    const std::string run = distributed_.group()->BroadcastText("");
    trainer->SaveTo(run + "/checkpoints");
    console.LogTo(format("{}/mxtrain.rank{}.log", run, group.rank()));
    if (start_.flags().resume) {
      start_.Resume(session, run, trainer, console);
      RequireEqualState(trainer);
    }
    TrainListener silent;
    const TrainResult result = trainer->Run(silent, &StopFlag());
    TellUnreadOfOthers(train, result, console);
    distributed_.AgreeToEnd();
    return result.end == RunEnd::kStopped ? 128 + SignalOfStop() : 0;
  }

  // The first process tells which examples the others could not read, but after a stop, when
  // nothing more is exchanged.
  void TellUnreadOfOthers(const DataIter& train, const TrainResult& result,
                          console::Console& console) const {
    if (!distributed_.group() || result.end == RunEnd::kStopped) return;
    const std::vector<std::string> texts =
        distributed_.group()->GatherText(UnreadText(train, /*validation=*/false));
    for (size_t rank = 1; distributed_.first() && rank < texts.size(); ++rank) {
      if (!texts[rank].empty())
        console.Message(LogLevel::kWarning, format("rank {}: {}", rank, texts[rank]));
    }
  }

  // What the processes were asked for, before anything depends on it. Not what each may have as it
  // likes: threads, devices, the log, the terminal, and --profile, which the first process alone
  // writes.
  void RequireEqualRequests(const CommonFlags& flags, const session::Session& session) {
    const auto given = [](bool flag) { return flag ? "given" : "not given"; };
    NamedTexts values = {{"program", VersionText()}, {"--dry-run", given(dry_run_)}};
    const NamedTexts of_run = start_.flags().Values();
    values.insert(values.end(), of_run.begin(), of_run.end());
    values.insert(values.end(), {{"--min-metric", min_metric_ ? format("{}", *min_metric_) : ""},
                                 {"--deterministic", given(flags.deterministic)},
                                 {"--engine", flags.engine}});
    distributed_.RequireEqual(values);
    distributed_.RequireEqualConfig(config::ToYaml(session.loaded().resolved));
  }

  // Each process has loaded the state that the run begins with.
  void RequireEqualState(Trainer* trainer) {
    if (!distributed_.group()) return;
    std::string layouts;
    for (const auto& [name, array] : trainer->executor().args()) {
      if (trainer->executor().grads().contains(name))
        layouts += format("{} {}\n", name, array.spec().layout.Name());
    }
    std::string weights;
    for (const auto& [name, array] : trainer->Arrays()) {
      const std::vector<float> values = array.ToVector();
      weights += format(
          "{}: {:016x}\n", name,
          Checksum({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
    }
    distributed_.RequireEqual({{"checkpoint", start_.checkpoint()},
                               {"number of steps", std::to_string(trainer->total_steps())},
                               {"layout of the weights (its CPU is of another kind)", layouts},
                               {"state of the weights", weights}});
  }

  // The signal may have reached another process alone.
  static int SignalOfStop() { return StopSignal() ? StopSignal() : SIGTERM; }

  // From here on the run has its folder.
  void Enter(session::Session& session, const report::RunFolder& folder, Trainer* trainer,
             console::Console& console) {
    folder_ = folder;
    examples_ = session.net().NameOfExamples();
    threads_ = session.runtime().backend(session.ctx()).threads();
    plugins_ = session.config().plugins;
    start_.Enter(session, folder, trainer, console);
  }

  // Trains; measures the share of the processor time that this got. The summary of a run that
  // diverges is written here.
  TrainResult RunIn(const report::RunFolder& folder, Runtime& runtime, Trainer* trainer,
                    TrainListener& listener, console::Console& console) {
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
      const Json summary =
          SummaryOf(folder, examples_, trainer->result(), report::PeakMemoryBytes());
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
               console::Console& console) const {
    constexpr int64_t kStepsAtOnce = 200;
    const std::string bundle = WriteBundle(*folder_, error, threads_);
    const std::string checkpoint = bundle + "/checkpoint";
    const int64_t from = std::filesystem::exists(checkpoint) ? PeekState(checkpoint).step : 0;
    CommonFlags trusting = flags;  // the run's own plug-ins, which a bundle of others may not load
    trusting.plugins.insert(trusting.plugins.end(), plugins_.begin(), plugins_.end());
    if (error.step() - from <= kStepsAtOnce)
      console.Message(LogLevel::kError, Replay(bundle, trusting, console).Text());
    console.Message(LogLevel::kInfo,
                    format("to repeat the failing step: mxtrain replay {}{}",
                           report::QuoteShell(bundle), session::PluginFlags(plugins_)));
  }

  // An error of the data or the configuration before the first save leaves no folder that
  // `--resume` would find or that would be in the way of the next try.
  void RemoveUnbegun() {
    if (!folder_ || !start_.made_folder() || distributed_.group() ||
        !NothingSaved(folder_->checkpoints()))
      return;
    const std::string path = folder_->path();
    folder_.reset();
    std::error_code kept;
    std::filesystem::remove_all(path, kept);
  }

  void Describe(session::Session& session, console::Console& console) {
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
    for (const bool validation : {false, true}) {
      const auto source = session.OpenSource(validation);
      if (!source) continue;
      for (const std::string& text : tasks::OddLabels(session.Tasks(), *source, !validation))
        console.Message(LogLevel::kWarning, text);
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

  // Reject an unreachable target before hours of training.
  void CheckMinMetric(const Trainer& trainer) const {
    if (!min_metric_ || *min_metric_ <= 1 || !trainer.HigherIsBetter()) return;
    Throw(ErrorKind::kUsage, "--min-metric {}: {} is at most 1; {} % is {}", *min_metric_,
          trainer.best().metric, *min_metric_, *min_metric_ / 100);
  }

  int DryRun(session::Session& session, const TrainOptions& options, DataIter& train, DataIter* val,
             console::Console& console) {
    start_.RequireCreatable();
    Trainer trainer(session.runtime(), options, train, val);
    const LeaveRanks leave(distributed_);
    TakePretrained(session, &trainer, console);
    trainer.Rehearse();
    console.Message(LogLevel::kInfo,
                    format("dry run passed: training would take {} steps; nothing was written",
                           trainer.total_steps()));
    return 0;
  }

  int Report(const session::Session& session, const report::RunFolder& folder,
             const DataIter& train, const TrainResult& r, int64_t peak_memory,
             console::Console& console) {
    TellUnread(train, /*validation=*/false, console);
    ReportRun(session.config(), folder, examples_, r, peak_memory, given_share_, console);
    console.RepeatWarnings();
    if (r.end == RunEnd::kStopped) return 128 + SignalOfStop();
    if (!r.last_is_finite) {
      console.Message(LogLevel::kError,
                      "after the last epoch the loss of the validation data is not finite (NaN or "
                      "infinite): check the scale of its inputs, or lower the learning rate");
      return static_cast<int>(ErrorKind::kDiverged);
    }
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

  DistributedRun& distributed_;
  RunStart start_;
  ConfigArguments config_;
  KVStoreFlag kvstore_;
  bool dry_run_ = false;
  std::string profile_, features_;
  std::optional<double> min_metric_;
  std::optional<report::RunFolder> folder_;  // of the run, once it exists
  std::string examples_;                     // what its rates count
  int threads_ = 0;                          // as the next
  std::vector<std::string> plugins_;         // of the configuration
  double given_share_ = 1;  // of the processor time that the training could have used (cpu_share.h)
};

}  // namespace

MXTRAIN_COMMAND(train, list) {
  list.Add(HelpGroup::kModel, 30,
           std::make_unique<Train>(list.program().command_line, list.program().distributed));
}

}  // namespace mxtrain::commands
