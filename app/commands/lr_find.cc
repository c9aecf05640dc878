// SPDX-License-Identifier: Apache-2.0
// mxtrain lr-find CONFIG: a learning rate range test (Smith 2015, "Cyclical Learning Rates for
// Training Neural Networks", section 3.3): the rate rises step by step until the loss diverges. A
// good rate is a third of that with the lowest loss, or a sixth of that at which the loss has risen
// again.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "app/commands/command_list.h"
#include "app/report/output.h"
#include "app/report/output_path.h"
#include "app/report/plot/chart.h"
#include "app/session/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::commands {
namespace {

struct RatePoint {
  double rate = 0, loss = 0;
};

// Keeps the loss of every step, and asks the trainer to stop once it has clearly risen.
class RateListener final : public TrainListener {
 public:
  RateListener(std::atomic<int>* stop, int64_t steps)
      : stop_(stop), kept_(1 - 1 / std::max(3.0, static_cast<double>(steps) / 25)) {}

  void OnStep(const StepEvent& e) override {
    average_ = kept_ * average_ + (1 - kept_) * e.recent_loss;
    weight_ = kept_ * weight_ + (1 - kept_);
    const double smooth = average_ / weight_;
    points_.push_back({e.lr, e.recent_loss});
    lowest_ = std::min(lowest_, smooth);
    risen_ = points_.size() > kLeast && smooth > kRisen * lowest_;
    if (risen_) *stop_ = 1;
  }

  const std::vector<RatePoint>& points() const { return points_; }
  bool risen() const { return risen_; }

 private:
  static constexpr double kRisen = 3;   // times the lowest average: stop
  static constexpr size_t kLeast = 10;  // steps before that counts
  std::atomic<int>* stop_;
  const double kept_;  // of the moving average, in each step
  std::vector<RatePoint> points_;
  double average_ = 0, weight_ = 0, lowest_ = HUGE_VAL;
  bool risen_ = false;
};

// What the curve shows.
struct RateCurve {
  std::vector<double> smooth;  // of the losses: means over the steps around each, which weigh less
                               // with their distance
  std::optional<double> suggestion, diverges;  // rates; nothing: the curve shows none
};

RateCurve ReadCurve(const std::vector<RatePoint>& points) {
  constexpr double kNoise = 0.02;      // of the loss at the beginning: less is no descent
  constexpr double kRisenAgain = 0.5;  // of the descent
  // Of the rate with the lowest loss, and of that at which it diverges. Compared with grids of
  // whole runs: the guide's page on experiments has the figures.
  constexpr double kBelowLowest = 3, kBelowDivergence = 6;
  RateCurve curve;
  const auto count = static_cast<int64_t>(points.size()), around = std::max<int64_t>(count / 20, 2);
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0, weights = 0;
    for (int64_t j = std::max<int64_t>(i - around, 0); j <= std::min(i + around, count - 1); ++j) {
      const double weight = static_cast<double>(around + 1 - std::abs(i - j));
      sum += weight * points[static_cast<size_t>(j)].loss;
      weights += weight;
    }
    curve.smooth.push_back(sum / weights);
  }
  if (count < 2 * around + 1) return curve;
  // Means of fewer steps, at both ends, are as low as single batches.
  const auto begin = curve.smooth.begin() + around, end = curve.smooth.end() - around;
  const auto lowest = std::min_element(begin, end);
  const double first = *std::max_element(begin, lowest + 1), depth = first - *lowest;
  if (depth <= kNoise * std::abs(first)) return curve;
  const auto rate_at = [&](auto place) {
    return points[static_cast<size_t>(place - curve.smooth.begin())].rate;
  };
  const auto risen = std::find_if(lowest, curve.smooth.end(), [&](double loss) {
    return loss > *lowest + kRisenAgain * depth;
  });
  if (risen != curve.smooth.end()) curve.diverges = rate_at(risen);
  curve.suggestion = rate_at(lowest) / kBelowLowest;
  if (curve.diverges)
    curve.suggestion = std::min(*curve.suggestion, *curve.diverges / kBelowDivergence);
  return curve;
}

class LrFind final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments =
        line.Add("lr-find", "learning rate range test: find a good initial learning rate");
    config_.Declare(arguments);
    arguments.Option("--from", &from_, "lowest rate; default: a thousandth of the configured rate")
        .Takes("RATE")
        .Positive();
    arguments
        .Option("--to", &to_,
                "highest rate; default: 1000 times the configured rate; the test ends earlier if "
                "the loss diverges")
        .Takes("RATE")
        .Positive();
    arguments
        .Option("--steps", &steps_, "number of steps; the rate rises by the same factor in each")
        .Within(20, 100000)
        .ShowsDefault();
    arguments
        .Option("--out", &out_,
                "folder for lr_find.csv, lr_find.svg and lr_find.png; default: runs/NAME-lr-find, "
                "where they replace those of an earlier test")
        .Takes("DIR");
    arguments.Flag("--overwrite", &overwrite_, "replace existing files in --out");
    arguments.Examples(
        "  mxtrain lr-find configs/mnist/lenet.yaml\n  mxtrain lr-find config.yaml --to 1 --steps "
        "300 --json");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    CatchSignals();
    if (!out_.empty()) {
      report::RequireFree(std::array{TableFile(), CurvesFile() + ".svg", CurvesFile() + ".png"},
                          config_.Files(), overwrite_);
    }
    session::Session session(config_, flags, console.log());
    session.BuildNet();
    auto train = session.TrainIter();
    TrainOptions options = RisingRate(session.MakeTrainOptions());
    session.MeasureAllLayers(&options);
    Trainer trainer(session.runtime(), options, *train, nullptr);
    RateListener listener(&StopFlag(), steps_);
    const bool ended = Train(&trainer, &listener) || listener.risen();
    if (StopSignal() != 0) return 128 + StopSignal();
    const std::vector<RatePoint>& points = listener.points();
    if (points.empty())
      Throw(ErrorKind::kDiverged,
            "the loss is not finite from the first step on; check the data and the initializer");
    RateCurve curve = ReadCurve(points);
    if (ended && !curve.diverges) curve.diverges = points.back().rate;
    const bool diverged = curve.diverges.has_value();
    WriteFiles(session.config().name, points, curve);
    CheckCurve(points, curve, ended, console);
    const double suggestion = *curve.suggestion;
    if (flags.json) {
      std::cout << report::JsonText({{"suggestion", suggestion},
                                     {"steps", points.size()},
                                     {"diverged", diverged},
                                     {"folder", out_}})
                << "\n";
    } else {
      std::cout << format("{}\n", report::FormatNumber(suggestion));
    }
    const std::string end =
        diverged ? format("; the loss has risen again at {}", report::FormatNumber(*curve.diverges))
                 : "";
    console.Message(LogLevel::kInfo, format("suggested initial rate: {}{}; curve: {}/lr_find.svg",
                                            report::FormatNumber(suggestion), end, out_));
    return 0;
  }

 private:
  // The configuration's run, with a rate that rises exponentially and nothing saved.
  TrainOptions RisingRate(TrainOptions options) {
    constexpr double kBelow = 1000, kAbove = 1000;  // times the configuration's rate
    Kwargs& given = options.optimizer.params;
    const double configured = Optimizer::Create(options.optimizer.name, given)->base_lr();
    if (from_ == 0) from_ = configured / kBelow;
    if (to_ == 0) to_ = configured * kAbove;
    if (from_ >= to_)
      Throw(ErrorKind::kUsage,
            "the rate must rise, but --from is {} and --to is {}; give --from below --to", from_,
            to_);
    std::erase_if(given, [](const auto& item) { return item.first == "lr"; });
    given.emplace_back("lr", params::Print(from_));
    const double factor = std::pow(to_ / from_, 1.0 / static_cast<double>(steps_ - 1));
    options.lr_schedule = {"exponential",
                           {{"factor", params::Print(factor)}, {"every", "1"}, {"unit", "steps"}}};
    options.epochs = steps_;  // the steps end the run
    options.max_steps = steps_;
    options.save = {0, 0, 0, 0};
    options.report_steps = 1;
    return options;
  }

  // True if the loss became NaN or infinite, which also ends the test.
  static bool Train(Trainer* trainer, RateListener* listener) {
    try {
      trainer->Run(*listener, &StopFlag());
      return false;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kDiverged) throw;
      return true;
    }
  }

  // Reports what the curve does not show, and what to do about it. Throws kCheckFailed if no rate
  // can be suggested.
  void CheckCurve(const std::vector<RatePoint>& points, const RateCurve& curve, bool ended,
                  console::Console& console) const {
    const std::string first = report::FormatNumber(points.front().rate),
                      last = report::FormatNumber(points.back().rate);
    if (ended && static_cast<int64_t>(points.size()) < steps_ / 5) {
      Throw(ErrorKind::kCheckFailed,
            "the loss diverges after {} steps, at a rate of {}, too early for a suggestion (see "
            "{}/lr_find.svg); start lower, with --from {}",
            points.size(), last, out_, report::FormatNumber(from_ / 1000));
    }
    if (!curve.suggestion) {
      Throw(ErrorKind::kCheckFailed,
            "the loss does not decrease at any rate from {} to {} (see {}/lr_find.svg); {}", first,
            last, out_,
            ended ? format("start lower, with --from {}", report::FormatNumber(from_ / 1000))
                  : "check the data and the initializer, or use more --steps");
    }
    if (curve.diverges) return;
    console.Message(LogLevel::kWarning,
                    format("the loss did not diverge up to a rate of {}, so a higher rate may be "
                           "better; extend the test with --to {}",
                           last, report::FormatNumber(to_ * 100)));
  }

  void WriteFiles(const std::string& name, const std::vector<RatePoint>& points,
                  const RateCurve& curve) {
    if (out_.empty()) out_ = "runs/" + name + "-lr-find";
    MakeFolders(out_);
    std::string table = "step,lr,loss,smooth_loss\n";
    plot::Chart::Series each{.name = "loss of a step", .points = {}, .colour = plot::kSky};
    plot::Chart::Series smooth{.name = "smoothed", .points = {}, .colour = plot::kBlue};
    for (size_t i = 0; i < points.size(); ++i) {
      table += format("{},{},{},{}\n", i + 1, points[i].rate, points[i].loss, curve.smooth[i]);
      each.points.push_back({points[i].rate, points[i].loss});
      smooth.points.push_back({points[i].rate, curve.smooth[i]});
    }
    WriteFileAtomically(TableFile(), table);
    plot::Chart chart;
    chart.title = format("{}: loss while the learning rate rises", name);
    chart.x = {.label = "learning rate", .log = true};
    chart.y = {.label = "loss of the batch", .log = true};
    chart.series = {each, smooth};
    if (curve.suggestion) {
      chart.marks.push_back(
          {*curve.suggestion, "suggestion " + report::FormatNumber(*curve.suggestion)});
    }
    plot::Save(plot::Draw(chart), CurvesFile());
  }
  std::string TableFile() const { return out_ + "/lr_find.csv"; }
  std::string CurvesFile() const { return out_ + "/lr_find"; }  // without its endings

  ConfigArguments config_;
  double from_ = 0, to_ = 0;
  int64_t steps_ = 200;
  std::string out_;
  bool overwrite_ = false;
};

}  // namespace

MXTRAIN_COMMAND(lr_find, list) {
  list.Add(HelpGroup::kChoices, 30, std::make_unique<LrFind>());
}

}  // namespace mxtrain::commands
