// SPDX-License-Identifier: Apache-2.0
// mxtrain plan CONFIG: layers, parameters, work, exact memory.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "app/commands/command_list.h"
#include "app/commands/forecast.h"
#include "app/commands/kvstore_flag.h"
#include "app/commands/layer_costs.h"
#include "app/commands/learning_rates.h"
#include "app/commands/net_plot.h"
#include "app/commands/plan_plot.h"
#include "app/commands/trained_form.h"
#include "app/report/output.h"
#include "app/report/output_path.h"
#include "app/report/text_table.h"
#include "app/report/text_width.h"
#include "app/session/batch_fit.h"
#include "app/session/device_choice.h"
#include "app/session/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/json.h"
#include "mxtrain/device/kernel_choices.h"
#include "mxtrain/executor/kernels.h"
#include "mxtrain/executor/memory_plan.h"
#include "mxtrain/io/pipeline.h"
#include "mxtrain/operator/host_kernel.h"

namespace mxtrain::commands {
namespace {

using Layer = LayerCost;

class Plan final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments =
        line.Add("plan", "show layers, parameters, work and exact memory of a net");
    config_.Declare(arguments);
    DeclarePlaces(arguments, &config_.places);
    arguments.Flag("--kernels", &kernels_,
                   "show the kernel chosen for each operator and why others were rejected; on a "
                   "GPU with --time also the measured kernels");
    arguments
        .Option("--plot", &plot_,
                "draw the memory plan of training into this file (.svg, .png): x axis time, y axis "
                "bytes")
        .Takes("FILE");
    arguments
        .Option("--plot-net", &plot_net_,
                "draw the net into this file (.svg, .png): layers top to bottom, with shapes and "
                "parameters")
        .Takes("FILE");
    arguments.Flag("--overwrite", &overwrite_, "replace existing files");
    arguments.Flag("--time", &time_,
                   "time a few training steps and estimate the time of an epoch and of the run");
    arguments
        .Option("--memory", &memory_,
                "print the largest batch whose training fits into this size, such as 8GiB, without "
                "recomputation")
        .Takes("BYTES");
    arguments
        .Option("--ranks", &ranks_,
                "of this many processes: show what each sends in a step, and with "
                "train.kvstore.shard_states or dist_async its part of the optimizer's states; not "
                "the arrays in which dist_async's gradients and values travel")
        .Takes("N")
        .Within(2, 1'000'000);
    kvstore_.Declare(arguments);
    arguments.Examples(
        "  mxtrain plan configs/imagenet/resnet50.yaml data.batch_size=64\n  mxtrain plan "
        "config.yaml --json\n"
        "  mxtrain plan config.yaml --plot memory.svg --plot-net net.svg\n  mxtrain plan "
        "config.yaml --memory 8GiB\n  mxtrain plan config.yaml --time\n"
        "  mxtrain plan config.yaml --ranks 8 --kvstore dist_async");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    session::DeviceOf(flags);  // refuses several
    report::RequireFree(std::array{plot_, plot_net_}, config_.Files(), overwrite_);
    kvstore_.AddTo(&config_);
    session::Session session(config_, flags, console.log());
    session.BuildNet();
    const std::vector<Layer> layers = CostsOfLayers(session);
    const executor::BindRequest train = session.MakeBindRequest(true),
                                infer = session.MakeBindRequest(false);
    const std::optional<FeatureCut> cut = session.Features();
    const Symbol trained_net = session.TrainedNet();
    const Graph &graph = session.net().symbol.graph(), &trained_graph = trained_net.graph();
    const auto training = executor::SummarizeMemory(trained_graph, train, session.runtime());
    const auto inference = executor::SummarizeMemory(graph, infer, session.runtime());
    const executor::ExecGraph trained =
        executor::RunPasses(trained_graph, train, session.runtime());
    if (cut && time_ && session.config().train.freeze.epochs == 0) {
      Throw(ErrorKind::kUsage,
            "--time times steps on images, and with data.cache: features training has none; remove "
            "one of them");
    }
    session::ExternalBytes outer =
        session::BytesOutsideArena(trained, train, session.StatesOfTraining());
    OfDevices of_devices = session::BytesOutsideArenas(trained, train, session.StatesOfTraining());
    if (cut) AddTrunk(session, infer, &outer, &of_devices[session.ctx()]);
    const DiskForecast disk = ForecastDisk(session, outer);
    RanksForecast of_ranks;
    if (ranks_ > 0) {
      of_ranks = ForecastRanks(session, trained, ranks_);
      const config::KVStoreConfig& kvstore = session.config().train.kvstore;
      if (kvstore.shard_states || kvstore.type == "dist_async")
        outer.optimizer = of_devices[session.ctx()].optimizer = of_ranks.optimizer_bytes;
    }
    std::optional<TimeForecast> time;
    if (time_) time = ForecastTime(session);
    if (!plot_.empty()) {
      const executor::MemoryPlan plan =
          executor::PlanMemory(trained, train, executor::Strategy::kFull);
      plot::SaveAs(PlotMemory(trained, plan,
                              format("{}: training on a batch of {}", session.config().name,
                                     session.config().data.batch_size)),
                   plot_);
    }
    if (!plot_net_.empty()) plot::SaveAs(DrawNet(session), plot_net_);
    const std::vector<SizePlan> sizes = PlanSizes(session, trained_graph, train);
    const TrainedForm form = FormOf(trained_graph, graph);
    const bool fits = !memory_.empty();
    const Fit fit = fits ? LargestBatch(session) : Fit();
    if (flags.json) {
      Json all = ToJson(layers, training, inference, outer);
      all["memory"]["training"]["devices"] = ToJson(training.arenas, of_devices);
      all["disk"] = {{"checkpoint_bytes", disk.checkpoint_bytes},
                     {"most_files", disk.most_files},
                     {"most_bytes", disk.checkpoint_bytes * disk.most_files}};
      all["trained_form"] = commands::ToJson(form);
      if (ranks_ > 0) all["ranks"] = {{"count", ranks_}, {"sent_bytes", of_ranks.sent_bytes}};
      for (const SizePlan& plan : sizes) {
        Json& one = all["sizes"].emplace_back(plan.json);
        one["full_bytes"] = plan.bytes;
      }
      if (time) all["time"] = ToJson(*time);
      if (cut) all["features"] = ToJson(session, *cut);
      all["learning_rates"] = RatesToJson(session);
      if (session.config().train.kvstore.sync_batch_norm) {
        const executor::ExchangedSums sums = executor::SumsOfStep(trained);
        all["batch_norm_sums"] = {{"per_step", sums.arrays}, {"bytes_per_step", sums.bytes}};
      }
      if (fits)
        all["fit"] = {{"memory_bytes", fit.memory},
                      {"batch_size", fit.batch},
                      {"total_bytes", session::TotalOf(fit.bytes)}};
      std::cout << report::JsonText(all, 2) << "\n";
    } else {
      const auto known = report::ColumnsOf(STDOUT_FILENO);
      const size_t columns = known.value_or(std::string::npos);
      std::ostringstream out;
      Print(session, layers, training, inference, columns, out);
      PrintDevices(training.arenas, of_devices, columns, out);
      PrintForm(session, form, out);
      PrintDisk(disk, out);
      if (ranks_ > 0) {
        out << format("between {} processes: each sends {} in a step\n", ranks_,
                      FormatBytes(of_ranks.sent_bytes));
      }
      PrintSizes(sizes, out);
      if (cut) PrintFeatures(session, *cut, out);
      PrintRates(session, out);
      if (session.config().train.kvstore.sync_batch_norm)
        PrintSums(executor::SumsOfStep(trained), out);
      if (time) PrintTime(*time, out);
      if (fits) PrintFit(fit, out);
      if (kernels_) PrintKernels(session, train, out);
      PrintTotal(training, outer, session.config().data.batch_size,
                 known.has_value() && flags.color != "never" && std::getenv("NO_COLOR") == nullptr,
                 out);
      std::cout << (known ? report::Fitted(out.str(), columns) : out.str());
    }
    return 0;
  }

 private:
  // The largest batch within some bytes of each device's memory.
  struct Fit {
    int64_t memory = 0;
    int64_t batch = 0;           // 0: not even one example for each worker
    session::MemoryBytes bytes;  // of that batch; of such examples if the batch is 0
    bool is_most = false;        // no larger one is possible
  };

  Fit LargestBatch(session::Session& session) const {
    const std::optional<config::ByteCount> memory = config::ParseByteCount(memory_);
    if (!memory)
      Throw(ErrorKind::kUsage, "--memory: expected a size such as 8GiB or 512MiB, got '{}'",
            memory_);
    // From here on for each worker.
    const auto workers = static_cast<int64_t>(session.MakeTrainOptions().workers.size());
    const int64_t most = io::kMostBatch / workers;
    Fit fit{memory->bytes, 0, session.BytesOfTraining(workers)};
    if (LargestOf(fit.bytes) > fit.memory) return fit;
    int64_t fits = 1, too_many = most + 1;
    for (int64_t part = 2; fits + 1 < too_many;
         part = too_many > most ? std::min(2 * fits, most) : (fits + too_many) / 2) {
      const session::MemoryBytes bytes = session.BytesOfTraining(part * workers);
      if (LargestOf(bytes) > fit.memory) {
        too_many = part;
      } else {
        fits = part;
        fit.bytes = bytes;
      }
    }
    fit.batch = fits * workers;
    fit.is_most = fits == most;
    return fit;
  }

  // Training on batches of one of several sizes: of data.bucket_lengths or train.multi_scale.
  struct SizePlan {
    std::string size;   // for people
    Json json;          // {length} or {height, width}
    int64_t bytes = 0;  // of the arena
  };

  static std::vector<SizePlan> PlanSizes(session::Session& session, const Graph& graph,
                                         const executor::BindRequest& train) {
    std::vector<SizePlan> plans;
    executor::BindRequest request = train;
    const auto add = [&](std::string size, Json json) {
      const executor::ExecGraph bound = executor::RunPasses(graph, request, session.runtime());
      plans.push_back(
          {std::move(size), std::move(json),
           executor::PlanMemory(bound, request, executor::Strategy::kFull).arena_bytes});
    };
    for (const io::ImageSize& size : session.ImageSizes()) {
      request.shapes = session.ShapesOfTraining(session.config().data.batch_size, size);
      add(format("{}x{} pixels", size.height, size.width),
          {{"height", size.height}, {"width", size.width}});
    }
    std::vector<int64_t> lengths = session.config().data.bucket_lengths;
    const auto& inputs = session.net().inputs;
    if (lengths.empty() || inputs.size() != 1 || !train.shapes.contains(inputs[0].name))
      return plans;
    TShape& shape = request.shapes.at(inputs[0].name);
    lengths.push_back(shape[shape.ndim() - 1]);
    for (const int64_t length : lengths) {
      shape[shape.ndim() - 1] = length;
      add(format("{}", length), {{"length", length}});
    }
    return plans;
  }

  static void PrintSizes(const std::vector<SizePlan>& plans, std::ostream& out) {
    if (plans.empty()) return;
    out << "executors of several sizes share the largest arena:\n";
    for (const SizePlan& plan : plans)
      out << format("  batches of {}: activations {}\n", plan.size, FormatBytes(plan.bytes));
  }

  static void PrintForm(const session::Session& session, const TrainedForm& form,
                        std::ostream& out) {
    const auto& inputs = session.net().inputs;
    const int rank = inputs.empty() ? 0 : inputs[0].shape.ndim();
    const int64_t length = rank > 0 ? inputs[0].shape[rank - 1] : 0;
    for (const std::string& line : LinesOf(form, length)) out << line << "\n";
  }

  static int64_t LargestOf(const session::MemoryBytes& bytes) {
    int64_t largest = 0;
    for (const auto& [device, taken] : bytes) largest = std::max(largest, taken);
    return largest;
  }

  using OfDevices = std::map<Context, session::ExternalBytes>;

  // Parameters before the features are kept too, as in evaluation.
  static void AddTrunk(session::Session& session, const executor::BindRequest& infer,
                       session::ExternalBytes* all, session::ExternalBytes* of_device) {
    const executor::ExecGraph graph =
        executor::RunPasses(session.net().symbol.graph(), infer, session.runtime());
    const session::ExternalBytes whole =
        session::BytesOutsideArena(graph, infer, session.StatesOfTraining());
    for (session::ExternalBytes* bytes : {all, of_device}) {
      bytes->parameters = whole.parameters;
      bytes->auxiliaries = whole.auxiliaries;
    }
  }

  static session::ExternalBytes Of(const OfDevices& devices, Context device) {
    const auto found = devices.find(device);
    return found == devices.end() ? session::ExternalBytes() : found->second;
  }

  static Json ToJson(const std::vector<executor::ArenaPlan>& arenas, const OfDevices& devices) {
    Json list = Json::array();
    for (const executor::ArenaPlan& arena : arenas) {
      const session::ExternalBytes own = Of(devices, arena.ctx);
      list.push_back({{"device", arena.ctx.ToString()},
                      {"full_bytes", arena.bytes},
                      {"lower_bound_bytes", arena.lower_bound},
                      {"parameters_bytes", own.parameters + own.auxiliaries},
                      {"gradients_bytes", own.gradients},
                      {"optimizer_bytes", own.optimizer},
                      {"averages_bytes", own.averages},
                      {"io_bytes", own.inputs + own.outputs},
                      {"total_bytes", own.Sum() + arena.bytes}});
    }
    return list;
  }

  static void PrintDevices(const std::vector<executor::ArenaPlan>& arenas, const OfDevices& devices,
                           size_t columns, std::ostream& out) {
    if (arenas.size() < 2) return;
    report::TextTable table({{"device", 10},
                             {"activations", 11},
                             {"lower bound", 11},
                             {"parameters", 10},
                             {"gradients", 10},
                             {"optimizer", 10},
                             {"other", 10},
                             {"total", 10}});
    for (const executor::ArenaPlan& arena : arenas) {
      const session::ExternalBytes own = Of(devices, arena.ctx);
      table.Add({arena.ctx.ToString(), FormatBytes(arena.bytes), FormatBytes(arena.lower_bound),
                 FormatBytes(own.parameters + own.auxiliaries), FormatBytes(own.gradients),
                 FormatBytes(own.optimizer), FormatBytes(own.averages + own.inputs + own.outputs),
                 FormatBytes(own.Sum() + arena.bytes)});
    }
    out << "\n" << table.Lines(columns);
    out << "  in training; activations include their gradients, copies between devices and "
           "workspaces;\n  other: inputs, outputs and averages of weights\n";
  }

  static void PrintDisk(const DiskForecast& disk, std::ostream& out) {
    out << format("on disk: {} per checkpoint; at most {} at once, {}\n",
                  FormatBytes(disk.checkpoint_bytes), disk.most_files,
                  FormatBytes(disk.checkpoint_bytes * disk.most_files));
  }

  // Of training and validation data, as if their images had one size; nothing if they are not
  // there. Throws kMemory if they do not fit.
  static std::optional<int64_t> FeatureBytes(session::Session& session, const FeatureCut& cut) {
    if (!std::filesystem::exists(session.config().data.train.path())) return std::nullopt;
    const auto training = session.OpenSource(false), validation = session.OpenSource(true);
    int64_t numbers = cut.Numbers();
    for (const io::FieldSpec& label : training->label_fields())
      numbers += label.shape.known() ? label.shape.Size() : 0;
    const int64_t examples = training->size() + (validation ? validation->size() : 0),
                  bytes = examples * numbers * static_cast<int64_t>(sizeof(float));
    CheckFeatureBytes(cut, bytes, session.config().data.cache_bytes.bytes);
    return bytes;
  }

  static Json ToJson(session::Session& session, const FeatureCut& cut) {
    const std::optional<int64_t> bytes = FeatureBytes(session, cut);
    return {{"layers", cut.layers},
            {"last", cut.last},
            {"numbers_per_example", cut.Numbers()},
            {"bytes", bytes ? Json(*bytes) : Json()}};
  }

  static void PrintFeatures(session::Session& session, const FeatureCut& cut, std::ostream& out) {
    const std::optional<int64_t> bytes = FeatureBytes(session, cut);
    const int64_t epochs = session.config().train.freeze.epochs;
    out << format(
        "features: {} layers up to {} are computed once{}: {} numbers for each "
        "example{}\n",
        cut.layers, report::Printable(cut.last),
        epochs > 0 ? format(", for the first {}", Counted(epochs, "epoch")) : "", cut.Numbers(),
        bytes ? format(", {} in memory", FormatBytes(*bytes)) : "");
    if (epochs > 0) out << "  memory and time are those of the epochs after them\n";
  }

  static Json RatesToJson(const session::Session& session) {
    Json list = Json::array();
    for (const RateGroup& group : RateGroupsOf(session)) {
      list.push_back({{"layers", group.layers},
                      {"multiplier", group.multiplier},
                      {"frozen_first", group.frozen_first},
                      {"arrays", group.parameters}});
    }
    return list;
  }

  static void PrintRates(const session::Session& session, std::ostream& out) {
    const std::vector<std::string> lines = RateLines(session);
    if (!lines.empty()) out << "learning rates, as multiples of the schedule's:\n";
    for (const std::string& line : lines) out << "  " << line << "\n";
  }

  static void PrintSums(const executor::ExchangedSums& sums, std::ostream& out) {
    out << format("batch norm over all workers and processes: {} per step, {} from each process\n",
                  Counted(sums.arrays, "sum"), FormatBytes(sums.bytes));
  }

  static Json ToJson(const TimeForecast& time) {
    return {{"timed_steps", time.timed_steps},
            {"step_seconds", time.step_seconds},
            {"synthetic", time.synthetic},
            {"steps_per_epoch", time.steps_per_epoch},
            {"epoch_seconds", time.steps_per_epoch ? Json(time.epoch_seconds()) : Json()},
            {"run_seconds", time.steps_per_epoch ? Json(time.run_seconds()) : Json()}};
  }

  static void PrintTime(const TimeForecast& time, std::ostream& out) {
    out << format("time: {:.1f} ms per step, from {} steps on {}", 1000 * time.step_seconds,
                  time.timed_steps, time.synthetic ? "synthetic data" : "the training data");
    if (time.steps_per_epoch > 0) {
      out << format("; {} per epoch of {} steps, {} for {} steps, without validation and saves",
                    report::FormatDuration(time.epoch_seconds()), time.steps_per_epoch,
                    report::FormatDuration(time.run_seconds()), time.total_steps);
    }
    out << "\n";
  }

  static void PrintFit(const Fit& fit, std::ostream& out) {
    if (fit.batch == 0) {
      out << format("not even one example fits into {}: it takes {}\n", FormatBytes(fit.memory),
                    session::ToString(fit.bytes));
    } else {
      out << format("the largest batch within {}: {}{} ({})\n", FormatBytes(fit.memory), fit.batch,
                    fit.is_most ? ", the most that batch_size may be" : "",
                    session::ToString(fit.bytes));
    }
  }

  static plot::Drawing DrawNet(session::Session& session) {
    const int64_t batch = session.config().data.batch_size;
    const InferredSpecs specs = InferSpecs(session.net().symbol.graph(),
                                           config::PlannedShapes(session.net(), batch), {}, false);
    std::set<std::string> inputs, labels;
    for (const config::NetInput& input : session.net().inputs) inputs.insert(input.name);
    for (const config::NetInput& label : session.net().labels) labels.insert(label.name);
    return PlotNet(session.net().symbol.graph(), specs, inputs, labels, session.config().name);
  }

  static const char* OptimalityName(executor::Optimality optimality) {
    switch (optimality) {
      case executor::Optimality::kMeetsBound:
        return "meets_bound";
      case executor::Optimality::kProvenSmallest:
        return "proven_smallest";
      case executor::Optimality::kNotProven:
        return "not_proven";
    }
    return "";
  }
  // The plan's size relative to the bound.
  static std::string Verdict(const executor::MemorySummary& m) {
    const double ratio = m.lower_bound_bytes ? static_cast<double>(m.full_bytes) /
                                                   static_cast<double>(m.lower_bound_bytes)
                                             : 1;
    switch (m.optimality) {
      case executor::Optimality::kMeetsBound:
        return "1.000, optimal";
      case executor::Optimality::kProvenSmallest:
        return format("{:.4f}, optimal: the bound is proven unreachable", ratio);
      case executor::Optimality::kNotProven:
        return format("{:.4f}, not proven optimal", ratio);
    }
    return "";
  }

  static Json ToJson(const executor::MemorySummary& m) {
    return {{"none_bytes", m.none_bytes},
            {"inplace_bytes", m.inplace_bytes},
            {"share_bytes", m.share_bytes},
            {"full_bytes", m.full_bytes},
            {"lower_bound_bytes", m.lower_bound_bytes},
            {"unsized_requests", m.unsized_requests},
            {"optimality", OptimalityName(m.optimality)}};
  }

  static Json ToJson(const std::vector<Layer>& layers, const executor::MemorySummary& training,
                     const executor::MemorySummary& inference,
                     const session::ExternalBytes& outer) {
    int64_t parameters = 0;
    double flops = 0;
    Json list = Json::array();
    for (const Layer& l : layers) {
      parameters += l.parameters;
      flops += l.flops;
      Json shapes = Json::array();
      for (const TShape& s : l.outputs) shapes.push_back(std::vector<int64_t>(s.begin(), s.end()));
      list.push_back({{"name", l.name},
                      {"operator", l.op},
                      {"where", l.where},
                      {"outputs", shapes},
                      {"parameters", l.parameters},
                      {"flops", l.flops}});
    }
    Json train = ToJson(training);
    train["parameters_bytes"] = outer.parameters + outer.auxiliaries;
    train["gradients_bytes"] = outer.gradients;
    train["optimizer_bytes"] = outer.optimizer;
    train["averages_bytes"] = outer.averages;
    train["inputs_bytes"] = outer.inputs;
    train["outputs_bytes"] = outer.outputs;
    train["total_bytes"] = outer.Sum() + training.full_bytes;
    Json infer = ToJson(inference);
    infer["parameters_bytes"] = outer.parameters + outer.auxiliaries;
    infer["total_bytes"] =
        outer.parameters + outer.auxiliaries + outer.inputs + outer.outputs + inference.full_bytes;
    return {{"parameters", parameters},
            {"forward_flops", flops},
            {"memory", {{"training", train}, {"inference", infer}}},
            {"layers", list}};
  }

  void Print(session::Session& session, const std::vector<Layer>& layers,
             const executor::MemorySummary& training, const executor::MemorySummary& inference,
             size_t columns, std::ostream& out) const {
    report::TextTable table(
        {{"layer"}, {"operator", 0, true}, {"output", 0, true}, {"parameters", 12}, {"MFLOP", 10}});
    int64_t parameters = 0;
    double flops = 0;
    const auto batch = static_cast<double>(session.config().data.batch_size);
    for (const Layer& l : layers) {
      table.Add({report::Printable(l.name), l.op, l.outputs[0].ToString(),
                 std::to_string(l.parameters), format("{:.3f}", l.flops / batch / 1e6)});
      parameters += l.parameters;
      flops += l.flops;
    }
    out << table.Lines(columns);
    out << format(
        "\n{} parameters; {:.4g} MFLOP forward for one example, as in the table (a multiplication "
        "with its addition counts as two); {:.4g} GFLOP for a batch of {}\n",
        parameters, flops / batch / 1e6, flops / 1e9, session.config().data.batch_size);
    report::TextTable memory({{"activations", 11},
                              {"planned", 10},
                              {"least", 10},
                              {"planned/least", 0, true},
                              {"in place", 10},
                              {"shared", 10},
                              {"unplanned", 10},
                              {"planned/unplanned", 17}});
    const auto row = [&memory](const char* name, const executor::MemorySummary& m) {
      const double part =
          m.none_bytes ? static_cast<double>(m.full_bytes) / static_cast<double>(m.none_bytes)
                       : 0.0;
      memory.Add({name, FormatBytes(m.full_bytes), FormatBytes(m.lower_bound_bytes), Verdict(m),
                  FormatBytes(m.inplace_bytes), FormatBytes(m.share_bytes),
                  FormatBytes(m.none_bytes), format("{:.3f}", part)});
    };
    row("training", training);
    row("inference", inference);
    out << "\n" << memory.Lines(columns);
    std::string note =
        "  the memory of activations, their gradients and the temporary space of kernels "
        "(workspaces).\n"
        "  planned: what the program takes, in one block (the arena); least: what is in use at the "
        "worst\n"
        "  moment, below which no plan can go. For comparison: in place, where results only "
        "overwrite\n"
        "  inputs that are not needed again; shared, where buffers only follow each other in the "
        "same\n"
        "  place; unplanned, where each array of the net has a buffer of its own (without "
        "workspaces,\n"
        "  so that a small net may take less)\n";
    if (columns != std::string::npos) {
      for (size_t at; (at = note.find("\n  ")) != std::string::npos; note[at] = ' ')
        note.erase(at, 2);
    }
    out << note;
    if (training.unsized_requests > 0) {
      out << format("  without {} of temporary space, whose size is known only in a run\n",
                    Counted(static_cast<size_t>(training.unsized_requests), "request"));
    }
    const size_t workers = session.MakeTrainOptions().workers.size();
    if (workers > 1)
      out << format("  training: for each of {} workers, on its part of the batch\n", workers);
  }

  // The answer, last: in bold on a terminal.
  static void PrintTotal(const executor::MemorySummary& training,
                         const session::ExternalBytes& outer, int64_t batch, bool bold,
                         std::ostream& out) {
    const auto row = [&out](const char* what, int64_t bytes) {
      out << format("  {:<44} {:>10}\n", what, FormatBytes(bytes));
    };
    out << "\n";
    row("parameters", outer.parameters + outer.auxiliaries);
    row("their gradients", outer.gradients);
    row("the optimizer's state (such as momentum)", outer.optimizer);
    if (outer.averages > 0) row("averages of parameters (train.ema)", outer.averages);
    row("one batch of data, and outputs", outer.inputs + outer.outputs);
    row("activations and workspaces, as planned", training.full_bytes);
    out << format("{}training takes {} on batches of {}{}\n", bold ? "\033[1m" : "",
                  FormatBytes(outer.Sum() + training.full_bytes), batch, bold ? "\033[0m" : "");
  }

  // "aBcd16b", "bfloat16 aBcd16b": with the type unless it is the usual one.
  static std::string StorageOf(const TensorSpec& spec) {
    return spec.type == DType::kFloat32 ? spec.layout.Name()
                                        : format("{} {}", NameOf(spec.type), spec.layout.Name());
  }

  // "scaled, dropped and sum": the layers in a fused operator.
  static std::string Printable(const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < names.size(); ++i) {
      text += i == 0 ? "" : i + 1 < names.size() ? ", " : " and ";
      text += report::Printable(names[i]);
    }
    return text;
  }

  // Asks every kernel again, as the passes did, and prints the answers.
  static void PrintKernels(session::Session& session, const executor::BindRequest& request,
                           std::ostream& out) {
    const executor::ExecGraph graph =
        executor::RunPasses(session.TrainedNet().graph(), request, session.runtime());
    out << "\nkernels in training:\n";
    for (const executor::ExecNode& node : graph.nodes) {
      if (node.kind == Node::Kind::kReorder) {
        const bool converts = node.specs[0].type != graph.spec(node.inputs[0]).type;
        out << format("  {}: {} {}\n", report::Printable(node.name),
                      converts ? "convert to" : "reorder to", StorageOf(node.specs[0]));
      }
      if (node.kind == Node::Kind::kCopy) {
        out << format("  _CrossDeviceCopy {}: {} to {}\n", report::Printable(node.name),
                      graph.nodes[node.inputs[0].node].ctx.ToString(), node.ctx.ToString());
      }
      if (node.kind != Node::Kind::kForward) continue;
      out << format("  {} {}: {}", node.op->TypeString(), report::Printable(node.name),
                    node.plan->kernel);
      if (node.origins.size() > 1) out << format(" of {}", Printable(node.origins));
      if (RunsOnHost(*node.plan)) out << " (on the CPU, with copies)";
      if (!node.plan->out.empty()) out << format(" -> {}", StorageOf(node.specs[0]));
      for (const auto& [kernel, reason] :
           executor::Refusals(graph, node, request, session.runtime()))
        out << format("; {} rejected: {}", kernel, reason);
      out << "\n";
    }
    const KernelChoices* choices = ChoicesOf(session.runtime().backend(session.ctx()));
    for (const auto& [key, choice] : choices ? choices->kept() : KernelChoices::Table())
      out << format("  {}: {}: {}\n",
                    choice == KernelChoices::kNotMeasured ? "default" : "measured", key, choice);
  }

  ConfigArguments config_;
  bool kernels_ = false, time_ = false, overwrite_ = false;
  std::string plot_, plot_net_, memory_;
  int ranks_ = 0;  // 0: not asked
  KVStoreFlag kvstore_;
};

}  // namespace

MXTRAIN_COMMAND(plan, list) {
  list.Add(HelpGroup::kChoices, 10, std::make_unique<Plan>());
}

}  // namespace mxtrain::commands
