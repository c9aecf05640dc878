// mxtrain lr-find CONFIG: a learning rate range test (Smith 2015, "Cyclical Learning Rates for Training Neural Networks", section 3.3): the
// rate rises step by step, and the loss says where it is too high.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "app/commands/session.h"
#include "app/report/output.h"
#include "app/report/plot/chart.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::commands {
namespace {

struct RatePoint {
  double rate = 0, loss = 0, smooth = 0;  // loss of one step; its moving average
};

// Takes the loss of every step out of the means over the epoch that the trainer reports, and asks it to stop once the loss has clearly
// risen.
class RateListener final : public TrainListener {
 public:
  explicit RateListener(std::atomic<int>* stop) : stop_(stop) {}

  void OnStep(const StepEvent& e) override {
    const auto count = static_cast<double>(e.step_in_epoch);
    const double sum = e.loss * count, loss = e.step_in_epoch == 1 ? sum : sum - sum_;
    sum_ = sum;
    average_ = kKept * average_ + (1 - kKept) * loss;
    weight_ = kKept * weight_ + (1 - kKept);
    const RatePoint point{e.lr, loss, average_ / weight_};
    points_.push_back(point);
    lowest_ = std::min(lowest_, point.smooth);
    if (points_.size() > kLeast && point.smooth > kRisen * lowest_) *stop_ = 1;
  }

  const std::vector<RatePoint>& points() const { return points_; }

 private:
  static constexpr double kKept = 0.95;  // of the moving average, in each step
  static constexpr double kRisen = 3;    // times the lowest average: nothing more is to be learned
  static constexpr size_t kLeast = 10;   // steps before that counts
  std::atomic<int>* stop_;
  std::vector<RatePoint> points_;
  double sum_ = 0, average_ = 0, weight_ = 0, lowest_ = HUGE_VAL;
};

class LrFind final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("lr-find", "a learning rate range test: which rates train, and which are too high");
    config_.Declare(arguments);
    arguments.Option("--from", &from_, "the lowest rate; default: a thousandth of the configuration's").Takes("RATE").Positive();
    arguments.Option("--to", &to_, "the highest rate; default: 30 times that of the configuration").Takes("RATE").Positive();
    arguments.Option("--steps", &steps_, "over so many steps the rate rises, by the same factor in each").Within(20, 100000).ShowsDefault();
    arguments.Option("--out", &out_, "folder for lr_find.csv, lr_find.svg and lr_find.png; default: runs/NAME-lr-find").Takes("DIR");
    arguments.Examples("  mxtrain lr-find configs/mnist/lenet.yaml\n  mxtrain lr-find config.yaml --to 1 --steps 300 --json");
  }

  int Run(const CommonFlags& flags, report::Console& console) override {
    CatchSignals();
    Session session(config_, flags, console);
    session.BuildNet();
    auto train = session.TrainIter();
    const TrainOptions options = RisingRate(session.MakeTrainOptions());
    Trainer trainer(session.runtime(), options, *train, nullptr);
    RateListener listener(&StopFlag());
    const bool diverged = Train(&trainer, &listener);
    if (StopSignal() != 0) return 128 + StopSignal();
    const std::vector<RatePoint>& points = listener.points();
    if (points.empty()) Throw(ErrorKind::kDiverged, "the loss is not finite from the first step on; look at the data and the initializer");
    const double suggestion = Suggest(points);
    WriteFiles(session.config().name, points, suggestion);
    if (flags.json) {
      std::cout << report::JsonText({{"suggestion", suggestion}, {"steps", points.size()}, {"diverged", diverged}, {"folder", out_}})
                << "\n";
    } else {
      std::cout << format("{}\n", report::FormatNumber(suggestion));
    }
    console.Message(LogLevel::kInfo, format("a rate to begin with: {}, a tenth of where the loss is lowest; the curve: {}/lr_find.svg",
                                            report::FormatNumber(suggestion), out_));
    return 0;
  }

 private:
  // The configuration's run, with a rate that rises exponentially and nothing saved.
  TrainOptions RisingRate(TrainOptions options) {
    constexpr double kBelow = 1000, kAbove = 30;  // times the configuration's rate
    Kwargs& given = options.optimizer.params;
    const double configured = Optimizer::Create(options.optimizer.name, given)->base_lr();
    if (from_ == 0) from_ = configured / kBelow;
    if (to_ == 0) to_ = configured * kAbove;
    if (from_ >= to_) Throw(ErrorKind::kUsage, "the rate is to rise from {} to {}; give --from below --to", from_, to_);
    std::erase_if(given, [](const auto& item) { return item.first == "lr"; });
    given.emplace_back("lr", params::Print(from_));
    const double factor = std::pow(to_ / from_, 1.0 / static_cast<double>(steps_ - 1));
    options.lr_schedule = {"exponential", {{"factor", params::Print(factor)}, {"every", "1"}, {"unit", "steps"}}};
    options.epochs = steps_;  // the steps end the run
    options.max_steps = steps_;
    options.save = {0, 0, 0, 0};
    options.report_steps = 1;
    return options;
  }

  // True when the loss stopped being finite, which ends the test as well.
  static bool Train(Trainer* trainer, RateListener* listener) {
    try {
      trainer->Run(*listener, &StopFlag());
      return false;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kDiverged) throw;
      return true;
    }
  }

  static double Suggest(const std::vector<RatePoint>& points) {
    const auto lowest =
        std::min_element(points.begin(), points.end(), [](const RatePoint& a, const RatePoint& b) { return a.smooth < b.smooth; });
    return lowest->rate / 10;
  }

  void WriteFiles(const std::string& name, const std::vector<RatePoint>& points, double suggestion) {
    if (out_.empty()) out_ = "runs/" + name + "-lr-find";
    std::filesystem::create_directories(out_);
    std::string table = "step,lr,loss,smooth_loss\n";
    plot::Chart::Series each{.name = "loss of a step", .points = {}, .colour = plot::kSky};
    plot::Chart::Series smooth{.name = "moving average", .points = {}, .colour = plot::kBlue};
    for (size_t i = 0; i < points.size(); ++i) {
      table += format("{},{},{},{}\n", i + 1, points[i].rate, points[i].loss, points[i].smooth);
      each.points.push_back({points[i].rate, points[i].loss});
      smooth.points.push_back({points[i].rate, points[i].smooth});
    }
    WriteFileAtomically(out_ + "/lr_find.csv", table);
    plot::Chart chart;
    chart.title = format("{}: loss while the learning rate rises", name);
    chart.x = {.label = "learning rate", .log = true};
    chart.y = {.label = "loss of the batch", .log = true};
    chart.series = {each, smooth};
    chart.marks = {{suggestion, "suggestion " + report::FormatNumber(suggestion)}};
    plot::Save(plot::Draw(chart), out_ + "/lr_find");
  }

  ConfigArguments config_;
  double from_ = 0, to_ = 0;
  int64_t steps_ = 200;
  std::string out_;
};

}  // namespace

std::unique_ptr<Command> MakeLrFind() {
  return std::make_unique<LrFind>();
}

}  // namespace mxtrain::commands
