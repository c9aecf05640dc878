// SPDX-License-Identifier: Apache-2.0
// mxtrain bench CONFIG: images/s with synthetic and with real data, compared with the machine's
// limits, and where the time goes.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

#include <unistd.h>

#include "app/commands/command_list.h"
#include "app/commands/machine_limits.h"
#include "app/commands/synthetic_iter.h"
#include "app/report/output.h"
#include "app/report/process_memory.h"
#include "app/session/device_choice.h"
#include "app/session/pipeline_spec.h"
#include "app/session/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/executor/captures.h"
#include "mxtrain/ndarray/device_times.h"
#include "mxtrain/operator/registry.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain::commands {
namespace {

constexpr size_t kRoundsForQuartiles = 5;

using Time = std::chrono::steady_clock;
double SecondsSince(Time::time_point from) {
  return std::chrono::duration<double>(Time::now() - from).count();
}

// Time per operator of a trace, by name of the layer.
std::map<std::string, double> OperatorTimes(const std::string& trace) {
  std::map<std::string, double> sums;
  const FileJson parsed = ReadJsonOf(trace, ReadFile(trace));
  for (const FileJson& event : parsed.at("traceEvents")) {
    if (event.value("ph", "") == "X")
      sums[event.at("name").get<std::string>()] += event.at("dur").get<double>();
  }
  return sums;
}

// What a forward pass over a batch takes, from the shapes alone.
struct Work {
  double flops = 0;  // operations
  // Read and written if every operator reads its inputs from memory and writes its outputs there.
  double elements = 0;
};

class Bench final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments =
        line.Add("bench", "images/s with synthetic and with real data, time per operator");
    config_.Declare(arguments);
    DeclarePlaces(arguments, &config_.places);
    arguments.Option("--seconds", &seconds_, "minimum time of each measurement")
        .Positive()
        .ShowsDefault();
    arguments.Option("--rounds", &rounds_, "number of measurements; the median is reported")
        .Positive()
        .ShowsDefault();
    arguments.Flag("--synthetic", &synthetic_, "skip the measurements with real data");
    arguments.Flag("--infer", &infer_, "measure forward passes instead of training steps");
    arguments.Option("--operators", &operators_, "how many operators to list")
        .NotNegative()
        .ShowsDefault();
    arguments.Examples(
        "  mxtrain bench configs/mnist/lenet.yaml\n  mxtrain bench config.yaml --synthetic --json\n"
        "      # host time: what pushing the work of a training step to the engine takes, without "
        "waiting\n"
        "      # captured, on a GPU: how many graphs are launched per step in place of single "
        "kernels");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    if (infer_) session::DeviceOf(flags);  // refuses several
    session::Session session(config_, flags, console.log());
    session.BuildNet();
    infer_ ? MeasureInference(session) : MeasureTraining(session);
    const int64_t batch = session.config().data.batch_size;
    const bool on_gpu = session.ctx().type == DeviceType::kGPU;
    const std::string examples = session.net().NameOfExamples();
    const double made = Quantile(synthetic_rates_, 0.5), matrix = Quantile(matrix_flops_, 0.5);
    const double real = real_rates_.empty() ? 0 : Quantile(real_rates_, 0.5),
                 data = real > 0 ? Quantile(data_rates_, 0.5) : 0;
    // Data and net share the CPU cores. Run one after the other, each on all cores, they would
    // give:
    const double in_turn = real > 0 ? 1 / (1 / data + 1 / made) : 0;
    // A training step does a layer's work three times: forward, gradient of the data, gradient of
    // the weights.
    const double passes_per_second = made / static_cast<double>(batch) * (infer_ ? 1 : 3),
                 copy = Quantile(copy_bytes_, 0.5);
    const Work work = ForwardWork(session);
    const double share = passes_per_second * work.flops / matrix;
    const double copy_share = passes_per_second * work.elements *
                              static_cast<double>(SizeOf(TypeOfProducts(session))) / copy;
    if (flags.json) {
      Json result = {
          {"batch", batch},
          {"train", !infer_},
          {"images_per_second", made},
          {"range", {Quantile(synthetic_rates_, 0), Quantile(synthetic_rates_, 1)}},
          {"quartiles",
           synthetic_rates_.size() >= kRoundsForQuartiles
               ? Json::array({Quantile(synthetic_rates_, 0.25), Quantile(synthetic_rates_, 0.75)})
               : Json()},
          {"host_seconds_per_step", infer_ ? Json() : Json(Quantile(host_seconds_, 0.5))},
          {"replays_per_step", on_gpu ? Json(Quantile(replays_, 0.5)) : Json()},
          {"device_seconds_per_step", on_gpu ? Json(device_seconds_) : Json()},
          {"real_images_per_second", real > 0 ? Json(real) : Json()},
          {"data_images_per_second", real > 0 ? Json(data) : Json()},
          {"share_of_data_and_net_in_turn", real > 0 ? Json(real / in_turn) : Json()},
          {"matrix_product_flops", matrix},
          {"share_of_matrix_product", share},
          {"copy_bytes_per_second", copy},
          {"share_of_copy", copy_share},
          {"peak_memory_bytes", peak_memory_},
          {"storage_peak_bytes", storage_peak_}};
      Json list = Json::object();
      for (const auto& [name, time] : times_) list[name] = time;
      result["operator_share"] = list;
      std::cout << report::JsonText(result) << std::endl;
      return 0;
    }
    std::cout << format("{}, batch {}\n  synthetic data: {} {}/s{}\n",
                        infer_ ? "inference" : "training", batch, report::FormatNumber(made),
                        examples, SpreadOf(synthetic_rates_));
    if (!infer_)
      std::cout << format("  host time:      {:.0f} us per step, to push its work\n",
                          1e6 * Quantile(host_seconds_, 0.5));
    if (on_gpu)
      std::cout << format("  captured:       {:.2f} graphs launched per step\n",
                          Quantile(replays_, 0.5));
    if (real > 0) {
      std::cout << format(
          "  data alone:     {0} {2}/s\n  real data:      {1} {2}/s ({3:.2f} of synthetic data's; "
          "{4:.2f} "
          "times what reading and\n                  computing would give one after the other)\n",
          report::FormatNumber(data), report::FormatNumber(real), examples, real / made,
          real / in_turn);
    }
    std::cout << format("  arithmetic:     {:.0f} % of a large matrix product's {:.0f} GFLOP/s\n",
                        100 * share, matrix / 1e9);
    std::cout << format(
        "  memory traffic: {:.0f} % of a large copy's {:.1f} GB/s, if nothing were fused or "
        "cached\n",
        100 * copy_share, copy / 1e9);
    std::cout << format(
        "  peak memory:    {} of the process, {} in arrays of {}\n\n{}\n",
        FormatBytes(peak_memory_), FormatBytes(storage_peak_), session.ctx().ToString(),
        on_gpu
            ? format("time of the device per operator, of {:.3f} ms per step, launched one by one",
                     1e3 * device_seconds_)
            : "time per operator");
    for (const auto& [name, time] : times_)
      std::cout << format("  {:5.1f} %  {}\n", 100 * time, name);
    return 0;
  }

 private:
  // Linear between the values around it.
  static double Quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    const double at = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(at);
    const double next = values[std::min(below + 1, values.size() - 1)];
    return std::lerp(values[below], next, at - static_cast<double>(below));
  }

  // How far the rounds differ. Quartiles of a few rounds would look more certain than they are.
  static std::string SpreadOf(const std::vector<double>& rates) {
    if (rates.size() < 2) return "";
    const auto at = [&rates](double q) { return report::FormatNumber(Quantile(rates, q)); };
    return rates.size() < kRoundsForQuartiles ? format(" (lowest {}, highest {})", at(0), at(1))
                                              : format(" (quartiles {}, {})", at(0.25), at(0.75));
  }

  static Work ForwardWork(session::Session& session) {
    const Graph& graph = session.net().symbol.graph();
    const InferredSpecs specs = InferSpecs(
        graph, config::PlannedShapes(session.net(), session.config().data.batch_size), {}, false);
    Work work;
    for (size_t id = 0; id < graph.nodes.size(); ++id) {
      const Node& node = graph.nodes[id];
      if (node.is_variable()) continue;
      std::vector<TShape> in;
      for (int i = 0; i < node.num_args; ++i)
        in.push_back(specs.shapes[node.inputs[i].node][node.inputs[i].index]);
      work.flops += 2 * node.op->ForwardFlops(in, specs.shapes[id]);
      for (const TShape& shape : in) work.elements += static_cast<double>(shape.Size());
      for (const TShape& shape : specs.shapes[id])
        work.elements += static_cast<double>(shape.Size());
    }
    return work;
  }

  // How long one call of `step` takes, after one for warm-up.
  static double SecondsOf(Runtime& runtime, const std::function<void()>& step) {
    step();
    runtime.engine().WaitForAll();
    const auto begin = Time::now();
    step();
    runtime.engine().WaitForAll();
    return SecondsSince(begin);
  }

  // Steps per second, measured over at least this many seconds.
  static double Rate(Runtime& runtime, double seconds, double seconds_of_one,
                     const std::function<void()>& step) {
    const int64_t count = std::max<int64_t>(1, static_cast<int64_t>(seconds / seconds_of_one));
    const auto begin = Time::now();
    for (int64_t i = 0; i < count; ++i) step();
    runtime.engine().WaitForAll();
    return static_cast<double>(count) / SecondsSince(begin);
  }

  // For measuring the machine's limits, which takes less time.
  double BriefRate(Runtime& runtime, const std::function<void()>& step) const {
    return Rate(runtime, 0.2 * seconds_, SecondsOf(runtime, step), step);
  }

  // Of what convolutions and matrix products read and write.
  static DType TypeOfProducts(const session::Session& session) {
    return session.MakeTrainOptions().modes.amp.value_or(DType::kFloat32);
  }

  // What is measured; `next` and `real` are empty without data, `host_seconds` unless training is
  // measured.
  struct Steps {
    std::function<void()> synthetic;  // the net on one batch, again and again
    std::function<void()> next;       // the next batch of the data, and no more
    std::function<void()> real;       // the net on the next batch of the data
    // So far, pushing work; per batch as much as a step of such batches takes.
    std::function<double()> host_seconds;
  };

  // Each of the steps, a matrix product and a copy in turn, `rounds_` times; then the operators.
  void Measure(session::Session& session, const Steps& steps) {
    Runtime& runtime = session.runtime();
    const auto batch = static_cast<double>(session.config().data.batch_size);
    const std::function<void()>&synthetic = steps.synthetic, &next = steps.next, &real = steps.real;
    const std::function<double()>& host_seconds = steps.host_seconds;
    const double step_seconds = SecondsOf(runtime, synthetic);
    // The limits are those of all threads, which only one worker gives to one operation.
    std::unique_ptr<Runtime> one_worker;
    if (runtime.options().cpu_workers > 1) {
      RuntimeOptions options = runtime.options();
      options.cpu_workers = 1;
      one_worker = std::make_unique<Runtime>(options, BuiltinOperators());
    }
    Runtime& whole = one_worker ? *one_worker : runtime;
    std::optional<MatrixProduct> product;
    std::optional<LargeCopy> copy;
    // Discards what was prefetched before.
    const auto rate_of_data = [&](const std::function<void()>& step) {
      for (int i = 0; i <= session.config().data.prefetch; ++i) step();
      runtime.engine().WaitForAll();
      return batch * Rate(runtime, seconds_, step_seconds, step);
    };
    const executor::Captures& captures = executor::CapturesOf(runtime);
    for (int r = 0; r < rounds_; ++r) {
      int64_t count = 0;
      const int64_t replays_before = captures.replays;
      const double host_before = host_seconds ? host_seconds() : 0;
      synthetic_rates_.push_back(
          batch * Rate(runtime, seconds_, step_seconds, [&] { ++count, synthetic(); }));
      replays_.push_back(static_cast<double>(captures.replays - replays_before) /
                         static_cast<double>(count));
      if (host_seconds)
        host_seconds_.push_back((host_seconds() - host_before) / static_cast<double>(count));
      if (real) {
        real_rates_.push_back(rate_of_data(real));
        data_rates_.push_back(rate_of_data(next));
      }
      if (!product) {  // its matrices are not part of the net
        peak_memory_ = report::PeakMemoryBytes();
        storage_peak_ = runtime.storage().GetStats(session.ctx()).peak;
        product.emplace(whole, session.ctx(), session.MakeTrainOptions().modes.math,
                        TypeOfProducts(session));
        copy.emplace(whole, session.ctx());
      }
      matrix_flops_.push_back(product->flops() * BriefRate(whole, [&] { product->Push(); }));
      copy_bytes_.push_back(copy->bytes() * BriefRate(whole, [&] { copy->Push(); }));
    }
    MeasureOperators(session, synthetic,
                     std::clamp<int64_t>(static_cast<int64_t>(seconds_ / step_seconds), 1, 20));
  }

  // Fills times_. To a trace of the host, a pass on a GPU is one operation.
  void MeasureOperators(session::Session& session, const std::function<void()>& step,
                        int64_t steps) {
    Runtime& runtime = session.runtime();
    std::map<std::string, double> sums;
    double total = 0;
    if (session.ctx().type == DeviceType::kGPU) {
      DeviceTimes& times = DeviceTimesOf(runtime);
      times.Start();
      for (int64_t i = 0; i < steps; ++i) step();
      sums = times.Stop();
      for (const auto& [name, seconds] : sums) total += seconds;
      device_seconds_ = total / static_cast<double>(steps);
    } else {
      const std::string trace =
          (std::filesystem::temp_directory_path() / format("mxtrain-bench-{}.json", getpid()))
              .string();
      runtime.engine().StartProfile();
      for (int64_t i = 0; i < steps; ++i) step();
      runtime.engine().StopProfile(trace);
      sums = OperatorTimes(trace);
      std::filesystem::remove(trace);
      for (const auto& [name, time] : sums) total += time;
    }
    for (const auto& [name, time] : sums) times_.emplace_back(name, time / total);
    std::stable_sort(times_.begin(), times_.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    if (times_.size() > static_cast<size_t>(operators_))
      times_.resize(static_cast<size_t>(operators_));
  }

  // Whole steps: forward, backward, updates through the KVStore. One trainer takes synthetic and
  // real batches.
  void MeasureTraining(session::Session& session) {
    TrainOptions options = session.MakeTrainOptions();
    session.MeasureAllLayers(&options);
    options.epochs = int64_t{1} << 20;
    options.max_steps = 0;
    std::unique_ptr<DataIter> real;
    if (!synthetic_ && !session.config().data.train.source.empty()) real = session.TrainIter();
    std::unique_ptr<SyntheticIter> made =
        real ? std::make_unique<SyntheticIter>(session.runtime(), session.ctx(),
                                               real->provide_data(), real->provide_label())
             : std::make_unique<SyntheticIter>(session.runtime(), session.ctx(), session.net(),
                                               session.config().data.batch_size);
    Trainer trainer(session.runtime(), options, real ? *real : *made, nullptr);
    DataBatch one, batch;
    made->Next(&one);
    Steps steps{[&] { trainer.Step(one); },
                {},
                {},
                [&] { return trainer.push_seconds() * static_cast<double>(options.grad_accum); }};
    if (real) {
      steps.next = NextOf(real.get(), &batch);
      steps.real = [&] {
        steps.next();
        trainer.Step(batch);
      };
    }
    Measure(session, steps);
  }

  // Forward passes on synthetic batches, and on images of the validation data as `infer` reads
  // them.
  void MeasureInference(session::Session& session) {
    std::unique_ptr<DataIter> real;
    if (!synthetic_ && !session.config().data.train.source.empty()) real = InferenceIter(session);
    SyntheticIter made = real ? SyntheticIter(session.runtime(), session.ctx(),
                                              real->provide_data(), real->provide_label())
                              : SyntheticIter(session.runtime(), session.ctx(), session.net(),
                                              session.config().data.batch_size);
    const Symbol net = OnBatchesOf(made, session.runtime().operators(), session.net().symbol);
    const ComputeModes modes = session.MakeTrainOptions().modes;
    auto executor = Executor::SimpleBind(
        session.runtime(), net, EvaluationRequest(net, ArraysOf(made), session.ctx(), modes));
    for (const auto* arrays : {&executor->args(), &executor->auxs()}) {
      for (const auto& [name, array] : *arrays) NDArray(array).Fill(0.01);
    }
    DataBatch one, batch;
    made.Next(&one);
    const InputOrder order(*executor, made);
    std::vector<NDArray> inputs, images;
    order.Arrange(one, &inputs);
    Steps steps{[&] { executor->Forward(inputs); }, {}, {}, {}};
    if (real) {
      steps.next = NextOf(real.get(), &batch);
      steps.real = [&] {
        steps.next();
        order.Arrange(batch, &images);
        executor->Forward(images);
      };
    }
    Measure(session, steps);
  }

  static std::unique_ptr<DataIter> InferenceIter(session::Session& session) {
    ModelInfo model;
    for (const config::NetInput& label : session.net().labels)
      model.labels.push_back({label.name, label.shape, label.dtype});
    for (const config::NetInput& input : session.net().inputs)
      model.inputs.push_back({input.name, input.shape, input.dtype});
    if (const auto val = session.ValIter()) {  // whose images may be of another size
      model.inputs.clear();
      for (const DataDesc& desc : val->provide_data()) {
        model.inputs.push_back(
            {desc.name,
             TShape(std::span(desc.shape.begin() + 1, static_cast<size_t>(desc.shape.ndim() - 1))),
             desc.type});
      }
    }
    auto source = session.EvaluationSource();
    const session::PipelineSpec spec =
        session::PipelineSpec::FromJson(session.MakeTrainOptions().model.pipeline);
    return session::NewModelIter(session.runtime(), std::move(source), spec, model,
                                 session.config().data.batch_size, session.ctx());
  }

  // Puts the next batch of an endless sequence of epochs into *batch.
  static std::function<void()> NextOf(DataIter* iter, DataBatch* batch) {
    return [iter, batch, epoch = int64_t{0}]() mutable {
      if (iter->Next(batch)) return;
      iter->Reset(++epoch);
      if (!iter->Next(batch))
        Throw(ErrorKind::kData, "the data set is smaller than one batch of {}", iter->batch_size());
    };
  }

  ConfigArguments config_;
  double seconds_ = 1;
  int rounds_ = 5, operators_ = 15;
  bool synthetic_ = false, infer_ = false;
  std::vector<double> synthetic_rates_, real_rates_, data_rates_;  // images/s of each round
  std::vector<double> host_seconds_, replays_;                     // per step, likewise
  std::vector<double> matrix_flops_, copy_bytes_;                  // per second, likewise
  // By the end of the first round: bytes of the process, and of the device's arrays (parameters,
  // gradients, states, arena, workspaces).
  int64_t peak_memory_ = 0, storage_peak_ = 0;
  double device_seconds_ = 0;                          // of all operators of a step on a GPU
  std::vector<std::pair<std::string, double>> times_;  // share of all operators' time
};

}  // namespace

MXTRAIN_COMMAND(bench, list) {
  list.Add(HelpGroup::kChoices, 20, std::make_unique<Bench>());
}

}  // namespace mxtrain::commands
