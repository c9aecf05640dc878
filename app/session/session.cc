// SPDX-License-Identifier: Apache-2.0
#include "app/session/session.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "app/config/address.h"
#include "app/config/schema.h"
#include "app/config/zoo.h"
#include "app/session/class_checks.h"
#include "app/session/compute_modes.h"
#include "app/session/device_choice.h"
#include "app/session/key_checks.h"
#include "app/session/pipeline_spec.h"
#include "app/session/plugin_trust.h"
#include "app/session/source_params.h"
#include "mxtrain/base/error.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/io/fingerprint.h"
#include "mxtrain/io/token_position.h"
#include "mxtrain/train/block_losses.h"
#include "mxtrain/train/model.h"
#include "mxtrain/train/packed_tokens.h"

const char* MxtrainVersion();  // written by the build: scripts/cmake/MxtrainVersion.cmake

namespace mxtrain::session {
namespace {

// runs/latest changes: the resolved configuration names its current target.
void FollowWeights(config::LoadedConfig* loaded, const Logger& log) {
  std::string& file = loaded->config.train.weights.file;
  if (file.empty() || config::IsAddress(file)) return;
  const std::string run = FollowLink(file);
  if (run == file) return;
  log.Write(LogLevel::kInfo, format("train.weights: {} is {}", file, run));
  file = run;
  loaded->resolved.Find("train")->value.Find("weights")->value.Find("file")->value =
      config::Value::Scalar(run, {}, true);
}

// The plug-ins of the flags belong to the configuration that a run keeps.
void AddPlugins(const std::vector<std::string>& flags, config::LoadedConfig* loaded,
                config::Diagnostics* diagnostics) {
  if (flags.empty()) return;
  std::vector<std::string>& plugins = loaded->config.plugins;
  plugins = MergePlugins(flags, plugins);
  if (config::Member* written = loaded->resolved.Find("plugins"))
    written->value = config::Write(plugins);
  const int source = diagnostics->sources().AddCommandLine("--plugin", {});
  for (config::KeyOrigin& origin : loaded->origins) {
    if (origin.path == "plugins") origin.place = {source, 1, 1, 1};
  }
}

config::LoadedConfig Load(const ConfigFiles& arguments, const ComputeOptions& flags,
                          config::Diagnostics* diagnostics, const Logger& log) {
  config::LoadRequest request;
  request.files = {arguments.file};
  request.files.insert(request.files.end(), arguments.more_files.begin(),
                       arguments.more_files.end());
  request.overrides = arguments.overrides;
  if (flags.seed) request.overrides.push_back(format("seed={}", *flags.seed));
  for (const std::string& file : request.files) {
    if (const auto shipped = config::ShippedFile(file))
      log.Write(LogLevel::kInfo,
                format("{}: {}, which comes with the program", file, shipped->string()));
  }
  config::LoadedConfig loaded = config::LoadConfig(request, diagnostics);
  FollowWeights(&loaded, log);
  if (arguments.trusts_plugins) AddPlugins(flags.plugins, &loaded, diagnostics);
  return loaded;
}

// Whether a chain has random steps: others than those of the default for evaluation.
bool DrawsInEvaluation(const std::vector<io::TransformSpec>& chain) {
  return !std::ranges::all_of(chain, io::StaysInEvaluation);
}

// With the plug-ins of the configuration, if its file may load them, else those of the flags.
std::unique_ptr<Runtime> OpenRuntime(const ConfigFiles& arguments, const ComputeOptions& flags,
                                     const config::Config& config, Context ctx,
                                     const std::shared_ptr<Log>& log) {
  const bool own = arguments.trusts_plugins;
  if (!own) RequirePluginsNamed(config.plugins, flags.plugins, arguments.file);
  return MakeRuntime(flags, config.seed,
                     MakeRegistry(own ? config.plugins : flags.plugins, ctx.type), log);
}

}  // namespace

Session::Session(const ConfigFiles& arguments, const ComputeOptions& flags,
                 const std::shared_ptr<Log>& log)
    : log_(log->For("program")),
      deterministic_(flags.deterministic),
      naive_(flags.engine == "naive"),
      devices_(DevicesOf(flags)),
      places_(ParsePlaces(arguments.places)),
      diagnostics_(std::make_shared<config::SourceMap>()),
      loaded_(Load(arguments, flags, &diagnostics_, log_)),
      runtime_(OpenRuntime(arguments, flags, loaded_.config, ctx(), log)),
      sets_(view()),
      iters_(view(), *runtime_, ctx(), sets_) {
  for (const auto& [group, device] : places_) CheckDevice(runtime_->backend(device), device);
  const std::string& math = config().train.math;
  if (ctx().type != DeviceType::kGPU) {
    if (math == "tf32")
      log_.Write(LogLevel::kInfo,
                 "train.math: tf32 is for GPUs; on the CPU it is the same as fast");
  } else if (MathOn(ModesOf(math, "", deterministic_).math, *runtime_, ctx()) == Math::kTf32) {
    log_.Write(
        LogLevel::kInfo,
        format("train.math: {}: on {} the factors of float32 products are rounded to 10 "
               "bits of fraction (TF32){}",
               math, ctx().ToString(), math == "fast" ? "; `exact` computes in float32" : ""));
  }
}

BindOptions Session::OptionsOfBinding() const {
  BindOptions options = BindOptionsOf(config().train, net_, devices_, deterministic_);
  CompleteModes(&options.modes);
  return options;
}

void Session::CompleteModes(ComputeModes* modes) const {
  modes->group2ctx = places_;
  modes->math = MathOn(modes->math, *runtime_, ctx());
}

void Session::CountEpochsFrom(int64_t first_epoch) {
  int64_t& epochs = loaded_.config.train.epochs;
  epochs = std::max<int64_t>(epochs - first_epoch, 0);
  config::Value& resolved = loaded_.resolved.Find("train")->value.Find("epochs")->value;
  resolved = config::Value::Scalar(std::to_string(epochs), resolved.place);
}

void Session::BuildNet(int64_t resumed_batch) {
  const auto counts = [this](std::string_view name) -> std::optional<int64_t> {
    const bool tokens = name == "tokens";
    if ((name != "classes" && !tokens) || config().data.train.source.empty()) return std::nullopt;
    if (diagnostics_.num_errors() > 0)
      return 1;  // report those first; any batch size will do to check the net
    return tokens ? sets_.CountTokens() : sets_.CountClasses(runtime_->operators());
  };
  net_ = config::BuildNet(config(), runtime_->operators(), counts, &diagnostics_);
  diagnostics_.ThrowIfErrors();
  config::MarkTexts(net_.texts, &loaded_.resolved);
  CheckInputOrder(view());
  CheckNetShapes(view());
  CheckImageSizes(view());
  CheckCarry(view(), runtime_->operators());
  CheckPatterns(view());
  CheckKVStore(view());
  CheckTask(view());
  diagnostics_.ThrowIfErrors();
  ChooseMetrics(view(), &loaded_);
  CheckLabelSets(view());
  WarnOfUntrained(view());
  WarnOfUnreported(view());
  diagnostics_.ThrowIfErrors();
  net_.symbol = WithWeightsOfClasses(view(), runtime_->operators(), sets_);
  if (const LoraOptions lora = LoraOf(config().train); !lora.layers.empty()) {
    net_.lora = LoraFactorsOf(net_.symbol, lora);
    net_.without_factors = net_.symbol;
    net_.symbol = WithLora(runtime_->operators(), net_.symbol, lora);
  }
  for (const config::Diagnostic& d : diagnostics_.TakeWarnings())
    log_.Write(LogLevel::kWarning, config::RenderForLog(d, diagnostics_.sources()));
  if (config().data.batch_size == 0) ChooseBatch(resumed_batch);
}

// data.batch_size: auto. Stores the number in the configuration and its resolved form.
void Session::ChooseBatch(int64_t resumed_batch) {
  constexpr int64_t kMost = 256;  // larger ones need other learning rates and are not faster
  const auto workers = static_cast<int64_t>(WorkersOf(config().train, devices_).size());
  const auto bytes_of = [&](int64_t part) { return BytesOfTraining(part * workers); };
  int64_t most = kMost;
  if (std::filesystem::exists(config().data.train.path()))
    most = std::min(most, OpenSource(false)->size());
  const auto memory_of = [this](Context device) { return FreeBytes(*runtime_, device) / 2; };
  const BatchFit fit =
      resumed_batch > 0 ? BatchFit() : PowerOfTwoWithin(memory_of, most / workers, bytes_of);
  const int64_t batch = resumed_batch > 0 ? resumed_batch : workers * fit.batch;
  loaded_.config.data.batch_size = static_cast<int>(batch);
  config::Member* data = loaded_.resolved.Find("data");
  data->value.Find("batch_size")->value = config::Value::Scalar(std::to_string(batch));
  const std::string limit =
      fit.limit ? format("; the memory of {} limits it", fit.limit->ToString()) : "";
  log_.Write(LogLevel::kInfo, resumed_batch > 0
                                  ? format("batch_size: auto: {}, as in the resumed run", batch)
                                  : format("batch_size: auto: {}, which takes {}{}", batch,
                                           ToString(BytesOfTraining(batch)), limit));
}

std::shared_ptr<const io::Source> Session::EvaluationSource() {
  BuildNet();
  const std::shared_ptr<const io::Source> training = OpenSource(false),
                                          validation = OpenSource(true);
  if (!validation && !training) Throw(ErrorKind::kData, "the configuration names no data");
  return validation ? validation : training;
}

std::string Session::DeviceNames() const {
  std::vector<std::string> names;
  for (const Context device : devices_) names.push_back(device.ToString());
  return format("{}", join(names, ", "));
}

void Session::JoinRanks(std::shared_ptr<ProcessGroup> group) {
  group_ = std::move(group);
  if (!group_) return;
  if (config().data.batch_size == 0) {
    Throw(ErrorKind::kConfig, "{}: data.batch_size: auto is for one process; give a number",
          diagnostics_.sources().Where(loaded_.PlaceOf("data.batch_size")));
  }
  if (config().data.cache == "features") {
    Throw(ErrorKind::kConfig, "{}: data.cache: features is for one process",
          diagnostics_.sources().Where(loaded_.PlaceOf("data.cache")));
  }
  const std::string& type = config().train.kvstore.type;
  const bool for_gpus = type == "dist_device_sync";
  if (for_gpus != (ctx().type == DeviceType::kGPU)) {
    Throw(
        ErrorKind::kUsage,
        "train.kvstore.type: {} sums in the memory of {}, and --device is {}; use {}, or --device "
        "{}",
        type, for_gpus ? "GPUs" : "the host", DeviceNames(),
        for_gpus ? "dist_sync" : "dist_device_sync", for_gpus ? "gpu" : "cpu");
  }
  if (deterministic_ && config().train.kvstore.type == "dist_async") {
    Throw(ErrorKind::kUsage,
          "--deterministic does not go with train.kvstore.type: dist_async, whose results differ "
          "from run to run; remove it, or use dist_sync");
  }
  if (naive_ && config().train.kvstore.type == "dist_async") {
    Throw(ErrorKind::kUsage,
          "--engine naive does not go with train.kvstore.type: dist_async, whose processes answer "
          "each other while they compute; remove it, or use dist_sync");
  }
  const int64_t staleness = config().train.kvstore.staleness, others = group_->size() - 1;
  if (staleness > 0 && staleness < others) {
    Throw(ErrorKind::kConfig,
          "{}: train.kvstore.staleness: {} is too low for {} processes, each of which updates once "
          "before any does again; set at least {}",
          diagnostics_.sources().Where(loaded_.PlaceOf("train.kvstore.staleness")), staleness,
          group_->size(), others);
  }
  iters_.TakePart(group_->rank(), group_->size());
}

TrainOptions Session::MakeTrainOptions() const {
  TrainOptions o = TrainOptionsOf(config().train, net_, devices_, deterministic_);
  CompleteModes(&o.modes);
  if (config().train.kvstore.between_processes() && !group_) {
    // A run of ranks that one process continues. Several GPUs send as the ranks' GPUs do.
    const bool several = devices_.size() > 1;
    const bool rounds = several && o.dist.wire == DistOptions::Wire::kBfloat16;
    o.kvstore = several ? "device" : "local";
    o.dist = {};
    if (rounds) o.dist.wire = DistOptions::Wire::kBfloat16;
  }
  o.group = group_;
  if (group_ && group_->size() > 1) o.sync_batch_norm = config().train.kvstore.sync_batch_norm;
  if (group_ && config().train.kvstore.scale_lr) {
    const double lr = Optimizer::Create(o.optimizer.name, o.optimizer.params)->base_lr();
    std::erase_if(o.optimizer.params, [](const auto& param) { return param.first == "lr"; });
    o.optimizer.params.emplace_back("lr", params::Print(lr * group_->size()));
  }
  o.modes.group2ctx = places_;
  o.model.class_names = class_names();
  o.model.carry = config().net.carry;
  if (!net_.lora.empty()) o.model.lora = LoraInfo{net_.lora, LoraOf(config().train).scale(), {}};
  const bool validates = sets_.HoldsOut() || !config().data.val.source.empty();
  o.model.pipeline =
      PipelineSpec{sets_.ConfigOf(validates).source,
                   sets_.ParamsOf(validates),
                   iters_.Transforms(validates),
                   o.metrics,
                   config().data.exact_decode,
                   config().data.bits,
                   config().task,
                   iters_.Tiles(),
                   DrawsInEvaluation(iters_.Transforms(validates)) ? config().seed : 0}
          .ToJson();
  o.model.config = config::ToYaml(loaded_.resolved);
  if (const auto& training = sets_.opened(false)) o.model.train_data = io::Fingerprint(*training);
  if (const auto& validation = sets_.opened(true)) o.model.val_data = io::Fingerprint(*validation);
  return o;
}

std::vector<std::unique_ptr<tasks::Task>> Session::Tasks() {
  PipelineSpec data;
  if (sets_.opened(false)) {
    data.source = sets_.ConfigOf(false).source;
    data.source_params = sets_.ParamsOf(false);
  }
  return TasksOf(view(), class_names(), data);
}

void Session::CacheFeatures(TrainOptions* options, const std::string& folder) {
  if (config().data.cache != "features") {
    if (folder.empty()) return;
    Throw(ErrorKind::kUsage,
          "--features {}: the configuration computes no features once; set data.cache: features, "
          "with layers that are frozen, or leave the option out",
          folder);
  }
  Features();  // reports at its place what forbids them
  FeatureOptions features;
  features.train = sets_.opened(false);
  features.val = sets_.opened(true);
  features.limit_bytes = config().data.cache_bytes.bytes;
  features.whole = [this](bool validation, std::shared_ptr<const io::Source> examples) {
    return iters_.Once(validation, std::move(examples));
  };
  features.over = [this](bool validation, std::shared_ptr<const io::Source> source) {
    return iters_.Over(validation, std::move(source));
  };
  features.folder = folder;
  features.preparation = [this](bool validation) {
    return format("mxtrain {}\n{}", MxtrainVersion(), iters_.Preparation(validation));
  };
  options->features = std::move(features);
}

void Session::MeasureAllLayers(TrainOptions* options) const {
  const int64_t epochs = config().train.freeze.epochs;
  if (epochs > 0) {
    options->freeze = {};
    log_.Write(LogLevel::kInfo,
               format("steps are measured in which all layers learn, as after the first {}",
                      Counted(epochs, "epoch")));
  }
  if (config().data.cache == "features") {
    log_.Write(LogLevel::kInfo,
               "data.cache: features: steps are measured in which all layers are computed");
  }
}

std::optional<FeatureCut> Session::Features() const {
  const config::TrainConfig& train = config().train;
  if (config().data.cache != "features") return std::nullopt;
  iters_.RequireSameEpochs();
  std::set<std::string> inputs, labels;
  for (const config::NetInput& input : net_.inputs) inputs.insert(input.name);
  for (const config::NetInput& label : net_.labels) labels.insert(label.name);
  LrPatterns lr_mult = LrPatternsOf(train, net_);
  for (const std::string& name : FrozenOf(train, net_)) lr_mult.emplace_back(name, 0);
  const OperatorRegistry& operators = runtime_->operators();
  try {
    CheckFeatureOptions(OptionsOfBinding());
    const Symbol net =
        FixesStatistics(train) ? WithFixedStatistics(operators, net_.symbol, lr_mult) : net_.symbol;
    const int64_t batch = std::max(config().data.batch_size, 1);  // 0: not chosen yet
    return CutAtFeatures(operators, net, config::BatchShapes(net_, batch), inputs, labels, lr_mult);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    Throw(ErrorKind::kConfig, "{}: data.cache: {}",
          diagnostics_.sources().Where(loaded_.PlaceOf("data.cache")), e.what());
  }
}

// Nothing if the whole net is trained in the end.
std::optional<FeatureCut> Session::CutOfTraining() const {
  return config().train.freeze.epochs > 0 ? std::nullopt : Features();
}

Symbol Session::TrainedNet() const {
  const std::optional<FeatureCut> cut = CutOfTraining();
  if (cut) return cut->head;
  const config::TrainConfig& train = config().train;
  const OperatorRegistry& operators = runtime_->operators();
  const BindOptions binding = OptionsOfBinding();
  const bool weighed =
      std::ranges::any_of(config().data.train.columns,
                          [this](const config::Column& column) { return IsWeight(column, net_); });
  const BlockLossRequest request{.ctx = binding.workers[0],
                                 .modes = binding.modes,
                                 .shapes = ShapesOfTraining(config().data.batch_size),
                                 .metrics = Metrics(),
                                 .watched = !train.monitor.pattern.empty(),
                                 .weighed = weighed};
  const Symbol net = WithLossesInBlocks(operators, net_.symbol, request);
  const Symbol fixed = FixesStatistics(train) && train.freeze.epochs == 0
                           ? WithFixedStatistics(operators, net, LrPatternsOf(train, net_))
                           : net;
  if (!PacksDocuments(config().data.train)) return fixed;
  const config::NetInput& tokens = net_.inputs[0];
  return WithPackedTokens(operators, fixed, tokens.name, tokens.shape[tokens.shape.ndim() - 1]);
}

std::map<std::string, TShape> Session::ShapesOfTraining(int64_t batch,
                                                        std::optional<io::ImageSize> size) const {
  if (const std::vector<io::ImageSize> sizes = ImageSizes(); !size && !sizes.empty())
    size = sizes.back();
  std::map<std::string, TShape> shapes =
      config::PlannedShapes(size ? WithImageSize(net_, *size) : net_, batch);
  if (PacksDocuments(config().data.train)) shapes[kTokenPosition] = shapes.at(net_.inputs[0].name);
  const std::optional<FeatureCut> cut = CutOfTraining();
  for (size_t i = 0; cut && i < cut->names.size(); ++i) {
    std::vector<int64_t> dims{batch};
    dims.insert(dims.end(), cut->shapes[i].begin(), cut->shapes[i].end());
    shapes[cut->names[i]] = TShape(dims);
  }
  return shapes;
}

executor::BindRequest Session::MakeBindRequest(bool training) const {
  const int64_t batch = config().data.batch_size;
  const std::map<std::string, TShape> shapes =
      training ? ShapesOfTraining(batch) : config::PlannedShapes(net_, batch);
  std::vector<DataDesc> arrays;
  for (const auto* inputs : {&net_.inputs, &net_.labels}) {
    for (const config::NetInput& input : *inputs) {
      const auto known = shapes.find(input.name);  // a label may have no declared shape
      arrays.push_back({input.name, known == shapes.end() ? TShape() : known->second, input.dtype});
    }
  }
  const BindOptions options = OptionsOfBinding();
  if (!training) return EvaluationRequest(net_.symbol, arrays, ctx(), options.modes);
  if (const std::optional<FeatureCut> cut = CutOfTraining()) {
    for (const std::string& name : cut->names) arrays.push_back({name, shapes.at(name)});
  }
  if (const auto positions = shapes.find(kTokenPosition); positions != shapes.end())
    arrays.push_back({kTokenPosition, positions->second});
  return TrainingRequest(options, TrainedNet(), arrays);
}

MemoryBytes Session::BytesOfTraining(int64_t batch) const {
  executor::BindRequest request = MakeBindRequest(true);
  const std::vector<Context> workers = WorkersOf(config().train, devices_);
  request.shapes = ShapesOfTraining(batch / static_cast<int64_t>(workers.size()));
  MemoryBytes bytes =
      TrainingBytes(*runtime_, TrainedNet(), std::move(request), StatesOfTraining());
  for (auto& [device, taken] : bytes) taken *= std::count(workers.begin(), workers.end(), ctx());
  // What computes the features is there at the same time.
  if (const std::optional<FeatureCut> cut = CutOfTraining()) {
    std::vector<InputInfo> inputs;
    for (const config::NetInput& input : net_.inputs)
      inputs.push_back({input.name, input.shape, input.dtype});
    for (const auto& [device, taken] :
         InferenceBytes(*runtime_, cut->trunk, inputs, batch, ctx(), OptionsOfBinding().modes))
      bytes[device] += taken;
  }
  return bytes;
}

}  // namespace mxtrain::session
