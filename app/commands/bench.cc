// mxtrain bench CONFIG: images/s with synthetic and with real data, and where the time goes.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>

#include <unistd.h>

#include "app/commands/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"

namespace mxtrain::commands {
namespace {

using Time = std::chrono::steady_clock;
double SecondsSince(Time::time_point from) { return std::chrono::duration<double>(Time::now() - from).count(); }

// Hands out one batch of pseudo-random numbers again and again.
class SyntheticIter final : public DataIter {
 public:
  SyntheticIter(Runtime& runtime, const config::Net& net, const executor::BindRequest& request, int64_t batch, int64_t steps)
      : batch_(batch), steps_(steps) {
    const auto shapes = net.symbol.InferShape(request.shapes);
    const auto arguments = net.symbol.ListArguments();
    auto add = [&](const std::vector<config::NetInput>& inputs, std::vector<DataDesc>* descs, std::vector<NDArray>* arrays) {
      for (const config::NetInput& input : inputs) {
        const auto at = std::find(arguments.begin(), arguments.end(), input.name) - arguments.begin();
        descs->push_back({input.name, shapes.arguments[static_cast<size_t>(at)], input.dtype});
        std::vector<float> values(static_cast<size_t>(descs->back().shape.Size()));
        for (size_t i = 0; i < values.size(); ++i) values[i] = descs == &label_ ? 0 : UniformAt(1, 2, 3, i);
        arrays->push_back(NDArray::FromVector(runtime, descs->back().shape, values));
      }
    };
    add(net.inputs, &data_, &one_.data);
    add(net.labels, &label_, &one_.label);
    one_.count = batch;
    one_.index.assign(static_cast<size_t>(batch), 0);
  }
  std::vector<DataDesc> provide_data() const override { return data_; }
  std::vector<DataDesc> provide_label() const override { return label_; }
  int64_t batch_size() const override { return batch_; }
  int64_t batches_per_epoch() const override { return steps_; }
  int64_t examples() const override { return batch_ * steps_; }
  std::string ExampleName(int64_t index) const override { return format("synthetic[{}]", index); }
  void Reset(int64_t, int64_t first_batch) override { next_ = first_batch; }
  bool Next(DataBatch* batch) override {
    if (next_ >= steps_) return false;
    *batch = one_;
    batch->batch = next_++;
    return true;
  }
  Stats stats() const override { return {}; }

 private:
  int64_t batch_, steps_, next_ = 0;
  std::vector<DataDesc> data_, label_;
  DataBatch one_;
};

// Time per operator of a trace, by name of the layer.
std::vector<std::pair<std::string, double>> OperatorTimes(const std::string& trace) {
  std::map<std::string, double> sums;
  const Json parsed = Json::parse(ReadFile(trace));
  for (const Json& event : parsed.at("traceEvents")) {
    if (event.value("ph", "") == "X") sums[event.at("name").get<std::string>()] += event.at("dur").get<double>();
  }
  std::vector<std::pair<std::string, double>> times(sums.begin(), sums.end());
  std::stable_sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return times;
}

class Bench final : public Command {
 public:
  CLI::App* Declare(CLI::App& app) override {
    CLI::App* sub = app.add_subcommand("bench", "images/s with synthetic and with real data, time per operator");
    config_.Declare(*sub);
    sub->add_option("--seconds", seconds_, "least time of each measurement")->check(CLI::PositiveNumber)->capture_default_str();
    sub->add_option("--rounds", rounds_, "measurements; the median counts")->check(CLI::PositiveNumber)->capture_default_str();
    sub->add_flag("--synthetic", synthetic_, "leave the real data out");
    sub->add_flag("--infer", infer_, "forward passes in place of training steps");
    sub->add_option("--operators", operators_, "how many operators to list")->check(CLI::NonNegativeNumber)->capture_default_str();
    sub->footer("Examples:\n  mxtrain bench configs/mnist/lenet.yaml\n  mxtrain bench config.yaml --synthetic --json");
    return sub;
  }

  int Run(const CommonFlags& flags, report::Console& console) override {
    Session session(config_, flags, console);
    session.BuildNet();
    const int64_t batch = session.config().data.batch_size;
    const std::vector<double> made = infer_ ? MeasureInference(session, batch) : MeasureSynthetic(session, batch);
    const double real = synthetic_ || infer_ || session.config().data.train.source.empty() ? 0 : MeasureReal(session);
    if (flags.json) {
      Json result = {{"batch", batch}, {"train", !infer_}, {"images_per_second", Quantile(made, 0.5)}, {"quartiles", {Quantile(made, 0.25), Quantile(made, 0.75)}},
                     {"real_images_per_second", real > 0 ? Json(real) : Json()}, {"peak_memory_bytes", report::PeakMemoryBytes()}};
      Json list = Json::object();
      for (const auto& [name, share] : times_) list[name] = share;
      result["operator_share"] = list;
      std::cout << result.dump() << std::endl;
      return 0;
    }
    std::cout << format("{}, batch {}\n  synthetic data: {} images/s (quartiles {}, {})\n", infer_ ? "inference" : "training", batch,
                        report::FormatNumber(Quantile(made, 0.5)), report::FormatNumber(Quantile(made, 0.25)), report::FormatNumber(Quantile(made, 0.75)));
    if (real > 0) std::cout << format("  real data:      {} images/s ({:.2f} of synthetic)\n", report::FormatNumber(real), real / Quantile(made, 0.5));
    std::cout << format("  peak memory:    {}\n\ntime per operator\n", FormatBytes(report::PeakMemoryBytes()));
    for (const auto& [name, share] : times_) std::cout << format("  {:5.1f} %  {}\n", 100 * share, name);
    return 0;
  }

 private:
  static double Quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
  }

  // Rates of `rounds_` stretches of `step`, each of at least seconds_; a traced stretch at the end fills times_.
  template <typename Step>
  std::vector<double> Measure(Runtime& runtime, int64_t batch, Step&& step) {
    engine::Engine& engine = runtime.engine();
    for (int i = 0; i < 3; ++i) step();
    engine.WaitForAll();
    const auto once = Time::now();
    for (int i = 0; i < 3; ++i) step();
    engine.WaitForAll();
    const int64_t steps = std::max<int64_t>(1, static_cast<int64_t>(seconds_ / (SecondsSince(once) / 3)));
    std::vector<double> rates;
    for (int r = 0; r < rounds_; ++r) {
      const auto begin = Time::now();
      for (int64_t i = 0; i < steps; ++i) step();
      engine.WaitForAll();
      rates.push_back(static_cast<double>(steps * batch) / SecondsSince(begin));
    }
    const std::string trace = (std::filesystem::temp_directory_path() / format("mxtrain-bench-{}.json", getpid())).string();
    engine.StartProfile();
    for (int64_t i = 0; i < std::min<int64_t>(steps, 20); ++i) step();
    engine.StopProfile(trace);
    times_ = OperatorTimes(trace);
    std::filesystem::remove(trace);
    double total = 0;
    for (const auto& [name, time] : times_) total += time;
    for (auto& [name, time] : times_) time /= total;
    if (times_.size() > static_cast<size_t>(operators_)) times_.resize(static_cast<size_t>(operators_));
    return rates;
  }

  // Whole steps: forward, backward, updates through the KVStore.
  std::vector<double> MeasureSynthetic(Session& session, int64_t batch) {
    TrainOptions options = session.MakeTrainOptions();
    options.epochs = 1;
    options.max_steps = 0;
    SyntheticIter iter(session.runtime(), session.net(), session.MakeBindRequest(true), batch, int64_t{1} << 40);
    Trainer trainer(session.runtime(), options, iter, nullptr);
    DataBatch one;
    return Measure(session.runtime(), batch, [&] {
      iter.Next(&one);
      trainer.Step(one);
    });
  }

  std::vector<double> MeasureInference(Session& session, int64_t batch) {
    SyntheticIter iter(session.runtime(), session.net(), session.MakeBindRequest(false), batch, int64_t{1} << 40);
    auto executor = Executor::SimpleBind(session.runtime(), session.net().symbol, session.MakeBindRequest(false));
    for (const auto* arrays : {&executor->args(), &executor->auxs()}) {
      for (const auto& [name, array] : *arrays) NDArray(array).Fill(0.01);
    }
    DataBatch one;
    iter.Next(&one);
    const std::vector<NDArray> inputs = OrderInputs(*executor, iter, one);
    return Measure(session.runtime(), batch, [&] { executor->Forward(inputs); });
  }

  double MeasureReal(Session& session) {
    auto train = session.TrainIter();
    TrainOptions options = session.MakeTrainOptions();
    options.epochs = int64_t{1} << 20;
    options.max_steps = 0;
    Trainer trainer(session.runtime(), options, *train, nullptr);
    DataBatch batch;
    int64_t images = 0, steps = 0, epoch = 0;
    auto begin = Time::now();
    train->Reset(0);
    while (steps < 20 || SecondsSince(begin) < seconds_ * rounds_) {
      if (!train->Next(&batch)) {
        train->Reset(++epoch);
        continue;
      }
      trainer.Step(batch);
      images += batch.count;
      if (++steps == 20) {
        session.runtime().engine().WaitForAll();
        begin = Time::now();
        images = 0;
      }
    }
    session.runtime().engine().WaitForAll();
    return static_cast<double>(images) / SecondsSince(begin);
  }

  ConfigArguments config_;
  double seconds_ = 1;
  int rounds_ = 5, operators_ = 15;
  bool synthetic_ = false, infer_ = false;
  std::vector<std::pair<std::string, double>> times_;  // share of the traced time
};

}  // namespace

std::unique_ptr<Command> MakeBench() { return std::make_unique<Bench>(); }

}  // namespace mxtrain::commands
