// SPDX-License-Identifier: Apache-2.0
#include "app/commands/train_report.h"

#include "app/report/output.h"
#include "app/session/plugin_trust.h"

namespace mxtrain::commands {
namespace {

constexpr double kShared = 0.8;  // of the processor time; less goes to other programs

const char* EndName(RunEnd end) {
  static constexpr const char* kNames[] = {"complete",   "stopped", "no_improvement",
                                           "time_limit", "target",  "diverged"};
  return kNames[static_cast<int>(end)];
}

// What limits the speed, and what to change.
std::string DescribeLimit(double wait_share, double given_share, bool images,
                          const config::DataConfig& data) {
  const std::string waited =
                        format("training waited for data {:.0f} % of the time", 100 * wait_share),
                    given = format("got {:.0f} % of the processor time it could have used",
                                   100 * given_share);
  const SpeedLimit limit = LimitOf(wait_share, given_share);
  switch (limit) {
    case SpeedLimit::kOtherPrograms:
      return format("limit: other programs on this machine (training {}; {})", given, waited);
    case SpeedLimit::kComputation:
      return format(
          "limit: computation ({}); a smaller net{} would be faster: mxtrain plan "
          "shows the cost of each layer",
          waited, images ? " or smaller images" : "");
    case SpeedLimit::kData:
    case SpeedLimit::kComputationAndData:
      break;
  }
  const bool alone = limit == SpeedLimit::kData;
  return format("limit: {} ({}{}); {}{}use more reader threads (data.workers)",
                alone ? "reading data" : "computation and reading data", waited,
                alone && given_share < kShared ? format(", and {}", given) : "",
                images && data.cache == "none" ? "keep decoded images with data.cache=ram, " : "",
                images ? "store smaller images, or " : "use a larger data.batch_size, or ");
}

// The progress of a schedule that the end of the run interrupted; "" if it reached its final
// rate.
std::string PlaceInSchedule(const config::Config& config, const TrainResult& r) {
  if (r.lr == r.last_lr) return "";
  return format("; the learning rate of schedule '{}' is {:.3g}, its final rate would be {:.3g}",
                config.train.lr_schedule.name, r.lr, r.last_lr);
}

// How the run ended, and the next commands.
std::string Next(const config::Config& config, const report::RunFolder& folder,
                 const TrainResult& r) {
  const std::string path = report::QuoteShell(folder.path());
  const std::string again = ContinueCommand(folder);
  const std::string flags = session::PluginFlags(config.plugins);
  const std::string predict = config.task == "language_model"
                                  ? format("mxtrain generate {}{} --prompt TEXT", path, flags)
                                  : format("mxtrain infer {} INPUT{}", path, flags);
  const std::string use = format("next: mxtrain eval {}{}, or {}", path, flags, predict);
  switch (r.end) {
    case RunEnd::kStopped:
      return format("stopped and saved after {} of {} steps; to continue: {}", r.steps,
                    r.total_steps, again);
    case RunEnd::kTimeLimit:
      return format("train.time_limit of {} reached after {} of {} steps{}; to continue: {}",
                    report::FormatDuration(static_cast<double>(config.train.time_limit.seconds)),
                    r.steps, r.total_steps, PlaceInSchedule(config, r), again);
    case RunEnd::kNoImprovement:
      return format("stopped early after {}: {} without improvement of {} (train.early_stop); {}",
                    Counted(r.epochs, "epoch"), config.train.early_stop.patience, r.best[0].metric,
                    use);
    case RunEnd::kTarget:
      return format("{} reached {} after {} (train.early_stop.target); {}", r.best[0].metric,
                    report::FormatNumber(*config.train.early_stop.target),
                    Counted(r.epochs, "epoch"), use);
    case RunEnd::kComplete:
    case RunEnd::kDiverged:  // thrown as an error
      break;
  }
  return use;
}

}  // namespace

SpeedLimit LimitOf(double wait_share, double given_share) {
  // Readers that get less processor time than they could use make training wait, too: cheaper
  // reading helps in either case, and no other cause explains so long a wait.
  if (wait_share >= 0.3) return SpeedLimit::kData;
  if (given_share < kShared) return SpeedLimit::kOtherPrograms;
  return wait_share < 0.05 ? SpeedLimit::kComputation : SpeedLimit::kComputationAndData;
}

std::string UnreadText(const DataIter& data, bool validation) {
  const auto bad = data.stats().bad;
  if (bad.empty()) return "";
  return format("{}{} could not be read, the first: {}",
                Counted(bad.size(), validation ? "validation example" : "example"),
                validation ? ", missing from the metrics," : "",
                report::NameAndReason(bad[0].first, bad[0].second));
}

void TellUnread(const DataIter& data, bool validation, console::Console& console) {
  const std::string text = UnreadText(data, validation);
  if (!text.empty()) console.Message(LogLevel::kWarning, text);
}

std::string ContinueCommand(const report::RunFolder& folder) {
  return format("mxtrain train {} --resume", report::QuoteShell(folder.path()));
}

Json SummaryOf(const report::RunFolder& folder, const std::string& examples, const TrainResult& r,
               int64_t peak_memory) {
  Json best = nullptr, last = Json::object();
  const BestValue& first = r.best[0];
  if (first.value)
    best = {{"epoch", first.epoch},
            {"metric", first.metric},
            {"value", *first.value},
            {"higher_is_better", r.higher_is_better}};
  for (const auto& [name, value] : r.last) last[name] = value;
  return {{"run", folder.path()},
          {"epochs", r.epochs},
          {"steps", r.steps},
          {"total_steps", r.total_steps},
          {"lr", r.lr},
          {"best", best},
          {"last", last},
          {"examples", examples},
          {"images_per_second", r.images_per_second},
          {"wait_share", r.wait_share},
          {"timed_batches", r.timed_batches},
          {"is_brief", r.is_brief},
          {"peak_memory_bytes", peak_memory},
          {"stopped", r.end == RunEnd::kStopped},
          {"end", EndName(r.end)}};
}

void ReportRun(const config::Config& config, const report::RunFolder& folder,
               const std::string& examples, const TrainResult& r, int64_t peak_memory,
               double given_share, console::Console& console) {
  const config::SourceConfig& val = config.data.val;
  const char* measured =
      val.source.empty() && val.holdout == 0 && val.folds == 0 ? "training " : "";
  for (const BestValue& best : r.best) {
    if (!best.value) continue;
    console.Message(LogLevel::kInfo, format("best: epoch {} by {}{} = {}", best.epoch, measured,
                                            best.metric, report::FormatNumber(*best.value)));
  }
  const std::string few =
      r.is_brief ? format(" (of {} batches with their start, too few to tell what limits it)",
                          r.timed_batches)
                 : "";
  const std::string speed = r.images_per_second > 0
                                ? format("{} {}/s in training{}, ",
                                         report::FormatNumber(r.images_per_second), examples, few)
                                : "";
  console.Message(LogLevel::kInfo, format("{}peak memory of the process {}, report: {}", speed,
                                          FormatBytes(peak_memory), folder.File("report.html")));
  if (!r.is_brief)
    console.Message(LogLevel::kInfo,
                    DescribeLimit(r.wait_share, given_share, examples == "images", config.data));
  console.Message(LogLevel::kInfo, Next(config, folder, r));
}

}  // namespace mxtrain::commands
