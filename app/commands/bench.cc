// mxtrain bench CONFIG: images/s with synthetic and with real data, beside what the machine can do, and where the time goes.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>

#include <unistd.h>

#include "app/commands/pipeline_spec.h"
#include "app/commands/session.h"
#include "app/commands/synthetic_iter.h"
#include "app/report/output.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/operator/imperative.h"

namespace mxtrain::commands {
namespace {

using Time = std::chrono::steady_clock;
double SecondsSince(Time::time_point from) { return std::chrono::duration<double>(Time::now() - from).count(); }

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

// A product of two large matrices: what the machine reaches.
class MatrixProduct {
 public:
  explicit MatrixProduct(Runtime& runtime)
      : runtime_(runtime), factors_(2, NDArray::FromVector(runtime, TShape{kSide, kSide}, std::vector<float>(static_cast<size_t>(kSide * kSide), 0.5F))) {
    Run();  // does not count
  }

  // Operations per second of some products, which take about so long.
  double Flops(double seconds) {
    constexpr int kMost = 100;
    const auto begin = Time::now();
    int count = 0;
    do {
      Run();
    } while (++count < kMost && SecondsSince(begin) < seconds);
    return 2.0 * kSide * kSide * kSide * count / SecondsSince(begin);
  }

 private:
  static constexpr int64_t kSide = 2048;
  void Run() {
    Invoke("FullyConnected", factors_, {{"num_hidden", format("{}", kSide)}, {"no_bias", "True"}});
    runtime_.engine().WaitForAll();
  }
  Runtime& runtime_;
  const std::vector<NDArray> factors_;
};

class Bench final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("bench", "images/s with synthetic and with real data, time per operator");
    config_.Declare(arguments);
    arguments.Option("--seconds", &seconds_, "least time of each measurement").Positive().ShowsDefault();
    arguments.Option("--rounds", &rounds_, "measurements; the median counts").Positive().ShowsDefault();
    arguments.Flag("--synthetic", &synthetic_, "leave the real data out");
    arguments.Flag("--infer", &infer_, "forward passes in place of training steps");
    arguments.Option("--operators", &operators_, "how many operators to list").NotNegative().ShowsDefault();
    arguments.Examples("  mxtrain bench configs/mnist/lenet.yaml\n  mxtrain bench config.yaml --synthetic --json");
  }

  int Run(const CommonFlags& flags, report::Console& console) override {
    if (infer_) DeviceOf(flags);  // refuses several
    Session session(config_, flags, console);
    session.BuildNet();
    infer_ ? MeasureInference(session) : MeasureTraining(session);
    const int64_t batch = session.config().data.batch_size;
    const double made = Quantile(synthetic_rates_, 0.5), matrix = Quantile(matrix_flops_, 0.5);
    const double real = real_rates_.empty() ? 0 : Quantile(real_rates_, 0.5), data = real > 0 ? Quantile(data_rates_, 0.5) : 0;
    // Data and net share the CPU's cores. In turn, each on all of them, they would give:
    const double in_turn = real > 0 ? 1 / (1 / data + 1 / made) : 0;
    // A training step does a layer's work three times: forward, gradient of the data, gradient of the weights.
    const double share = made * (infer_ ? 1 : 3) * ForwardFlops(session) / static_cast<double>(batch) / matrix;
    if (flags.json) {
      Json result = {{"batch", batch}, {"train", !infer_}, {"images_per_second", made},
                     {"quartiles", {Quantile(synthetic_rates_, 0.25), Quantile(synthetic_rates_, 0.75)}},
                     {"real_images_per_second", real > 0 ? Json(real) : Json()},
                     {"data_images_per_second", real > 0 ? Json(data) : Json()}, {"share_of_data_and_net_in_turn", real > 0 ? Json(real / in_turn) : Json()},
                     {"matrix_product_flops", matrix}, {"share_of_matrix_product", share},
                     {"peak_memory_bytes", peak_memory_}};
      Json list = Json::object();
      for (const auto& [name, time] : times_) list[name] = time;
      result["operator_share"] = list;
      std::cout << report::JsonText(result) << std::endl;
      return 0;
    }
    std::cout << format("{}, batch {}\n  synthetic data: {} images/s (quartiles {}, {})\n", infer_ ? "inference" : "training", batch,
                        report::FormatNumber(made), report::FormatNumber(Quantile(synthetic_rates_, 0.25)),
                        report::FormatNumber(Quantile(synthetic_rates_, 0.75)));
    if (real > 0) {
      std::cout << format("  data alone:     {} images/s\n  real data:      {} images/s ({:.2f} of synthetic, {:.2f} of data and net in turn)\n",
                          report::FormatNumber(data), report::FormatNumber(real), real / made, real / in_turn);
    }
    std::cout << format("  arithmetic:     {:.0f} % of a large matrix product's {:.0f} GFLOP/s\n", 100 * share, matrix / 1e9);
    std::cout << format("  peak memory:    {}\n\ntime per operator\n", FormatBytes(peak_memory_));
    for (const auto& [name, time] : times_) std::cout << format("  {:5.1f} %  {}\n", 100 * time, name);
    return 0;
  }

 private:
  static double Quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
  }

  // Floating-point operations of a forward pass over a batch.
  static double ForwardFlops(Session& session) {
    const Graph& graph = session.net().symbol.graph();
    const InferredSpecs specs = InferSpecs(graph, config::BatchShapes(session.net(), session.config().data.batch_size), {}, false);
    double flops = 0;
    for (size_t id = 0; id < graph.nodes.size(); ++id) {
      const Node& node = graph.nodes[id];
      if (node.is_variable()) continue;
      std::vector<TShape> in;
      for (int i = 0; i < node.num_args; ++i) in.push_back(specs.shapes[node.inputs[i].node][node.inputs[i].index]);
      flops += 2 * node.op->ForwardFlops(in, specs.shapes[id]);
    }
    return flops;
  }

  // How long one call of `step` takes, after one that does not count.
  static double SecondsOf(Runtime& runtime, const std::function<void()>& step) {
    step();
    runtime.engine().WaitForAll();
    const auto begin = Time::now();
    step();
    runtime.engine().WaitForAll();
    return SecondsSince(begin);
  }

  // Batches per second of a stretch of at least seconds_.
  double Rate(Runtime& runtime, double seconds_of_one, const std::function<void()>& step) const {
    const int64_t count = std::max<int64_t>(1, static_cast<int64_t>(seconds_ / seconds_of_one));
    const auto begin = Time::now();
    for (int64_t i = 0; i < count; ++i) step();
    runtime.engine().WaitForAll();
    return static_cast<double>(count) / SecondsSince(begin);
  }

  // What is measured; `next` and `real` are empty where there are no data.
  struct Steps {
    std::function<void()> synthetic;  // the net on one batch, again and again
    std::function<void()> next;       // the next batch of the data, and no more
    std::function<void()> real;       // the net on the next batch of the data
  };

  // Each of the steps and a matrix product in turn, `rounds_` times; then a trace fills times_.
  void Measure(Session& session, const Steps& steps) {
    Runtime& runtime = session.runtime();
    const auto batch = static_cast<double>(session.config().data.batch_size);
    const auto& [synthetic, next, real] = steps;
    const double step_seconds = SecondsOf(runtime, synthetic);
    std::optional<MatrixProduct> product;
    // Without what was prefetched before.
    const auto rate_of_data = [&](const std::function<void()>& step) {
      for (int i = 0; i <= session.config().data.prefetch; ++i) step();
      runtime.engine().WaitForAll();
      return batch * Rate(runtime, step_seconds, step);
    };
    for (int r = 0; r < rounds_; ++r) {
      synthetic_rates_.push_back(batch * Rate(runtime, step_seconds, synthetic));
      if (real) {
        real_rates_.push_back(rate_of_data(real));
        data_rates_.push_back(rate_of_data(next));
      }
      if (!product) {
        peak_memory_ = report::PeakMemoryBytes();  // the matrices are no part of the net
        product.emplace(runtime);
      }
      matrix_flops_.push_back(product->Flops(0.2 * seconds_));
    }
    const std::string trace = (std::filesystem::temp_directory_path() / format("mxtrain-bench-{}.json", getpid())).string();
    runtime.engine().StartProfile();
    for (int64_t i = 0; i < std::clamp<int64_t>(static_cast<int64_t>(seconds_ / step_seconds), 1, 20); ++i) synthetic();
    runtime.engine().StopProfile(trace);
    times_ = OperatorTimes(trace);
    std::filesystem::remove(trace);
    double total = 0;
    for (const auto& [name, time] : times_) total += time;
    for (auto& [name, time] : times_) time /= total;
    if (times_.size() > static_cast<size_t>(operators_)) times_.resize(static_cast<size_t>(operators_));
  }

  // Whole steps: forward, backward, updates through the KVStore. One trainer takes synthetic and real batches.
  void MeasureTraining(Session& session) {
    TrainOptions options = session.MakeTrainOptions();
    options.epochs = int64_t{1} << 20;
    options.max_steps = 0;
    std::unique_ptr<DataIter> real;
    if (!synthetic_ && !session.config().data.train.source.empty()) real = session.TrainIter();
    std::unique_ptr<SyntheticIter> made =
        real ? std::make_unique<SyntheticIter>(session.runtime(), real->provide_data(), real->provide_label())
             : std::make_unique<SyntheticIter>(session.runtime(), session.net(), session.config().data.batch_size);
    Trainer trainer(session.runtime(), options, real ? *real : *made, nullptr);
    DataBatch one, batch;
    made->Next(&one);
    Steps steps{[&] { trainer.Step(one); }, {}, {}};
    if (real) {
      steps.next = NextOf(real.get(), &batch);
      steps.real = [&] {
        steps.next();
        trainer.Step(batch);
      };
    }
    Measure(session, steps);
  }

  // Forward passes on synthetic batches, and on pictures of the validation data as `infer` reads them.
  void MeasureInference(Session& session) {
    std::unique_ptr<DataIter> real;
    if (!synthetic_ && !session.config().data.train.source.empty()) real = InferenceIter(session);
    SyntheticIter made = real ? SyntheticIter(session.runtime(), real->provide_data(), real->provide_label())
                              : SyntheticIter(session.runtime(), session.net(), session.config().data.batch_size);
    executor::BindRequest request = session.MakeBindRequest(false);
    for (const DataDesc& desc : made.provide_data()) request.shapes[desc.name] = desc.shape;
    auto executor = Executor::SimpleBind(session.runtime(), session.net().symbol, std::move(request));
    for (const auto* arrays : {&executor->args(), &executor->auxs()}) {
      for (const auto& [name, array] : *arrays) NDArray(array).Fill(0.01);
    }
    DataBatch one, batch;
    made.Next(&one);
    const InputOrder order(*executor, made);
    std::vector<NDArray> inputs, pictures;
    order.Arrange(one, &inputs);
    Steps steps{[&] { executor->Forward(inputs); }, {}, {}};
    if (real) {
      steps.next = NextOf(real.get(), &batch);
      steps.real = [&] {
        steps.next();
        order.Arrange(batch, &pictures);
        executor->Forward(pictures);
      };
    }
    Measure(session, steps);
  }

  static std::unique_ptr<DataIter> InferenceIter(Session& session) {
    ModelInfo model;
    for (const config::NetInput& label : session.net().labels) model.labels.push_back({label.name, label.shape, label.dtype});
    for (const config::NetInput& input : session.net().inputs) model.inputs.push_back({input.name, input.shape, input.dtype});
    if (const auto val = session.ValIter()) {  // whose pictures may be of another size
      model.inputs.clear();
      for (const DataDesc& desc : val->provide_data()) {
        model.inputs.push_back({desc.name, TShape(std::span(desc.shape.begin() + 1, static_cast<size_t>(desc.shape.ndim() - 1))), desc.type});
      }
    }
    auto source = session.EvaluationSource();
    const PipelineSpec spec = PipelineSpec::FromJson(session.MakeTrainOptions().model.pipeline);
    return NewModelIter(session.runtime(), std::move(source), spec, model, session.config().data.batch_size);
  }

  // Puts the next batch of an endless row of epochs into *batch.
  static std::function<void()> NextOf(DataIter* iter, DataBatch* batch) {
    return [iter, batch, epoch = int64_t{0}]() mutable {
      if (iter->Next(batch)) return;
      iter->Reset(++epoch);
      if (!iter->Next(batch)) Throw(ErrorKind::kData, "the data hold less than one batch of {}", iter->batch_size());
    };
  }

  ConfigArguments config_;
  double seconds_ = 1;
  int rounds_ = 5, operators_ = 15;
  bool synthetic_ = false, infer_ = false;
  std::vector<double> synthetic_rates_, real_rates_, data_rates_;  // images/s of each round
  std::vector<double> matrix_flops_;                   // per second, likewise
  int64_t peak_memory_ = 0;                            // bytes of the process, by the end of the first round
  std::vector<std::pair<std::string, double>> times_;  // share of the traced time
};

}  // namespace

std::unique_ptr<Command> MakeBench() { return std::make_unique<Bench>(); }

}  // namespace mxtrain::commands
