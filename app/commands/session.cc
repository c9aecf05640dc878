// SPDX-License-Identifier: Apache-2.0
#include "app/commands/session.h"

#include <algorithm>
#include <filesystem>

#include "app/commands/batch_fit.h"
#include "app/commands/compute_modes.h"
#include "app/commands/device_flag.h"
#include "app/commands/pipeline_spec.h"
#include "app/commands/plugin_trust.h"
#include "app/config/schema.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/glob.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/device/cpu/cpu_count.h"
#include "mxtrain/io/class_counts.h"
#include "mxtrain/io/column_statistics.h"
#include "mxtrain/io/fingerprint.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/train/model.h"

namespace mxtrain::commands {
namespace {

config::LoadRequest ToRequest(const ConfigArguments& arguments) {
  config::LoadRequest request;
  request.files = {arguments.file};
  request.files.insert(request.files.end(), arguments.more_files.begin(),
                       arguments.more_files.end());
  request.overrides = arguments.overrides;
  return request;
}

std::vector<io::TransformSpec> ToTransforms(const std::vector<config::Named>& named) {
  std::vector<io::TransformSpec> specs;
  for (const config::Named& n : named) specs.push_back({n.name, n.params});
  return specs;
}

// "cat 0.75, dog 1.5"; without names the numbers alone.
std::string ShortList(const std::vector<double>& values, const std::vector<std::string>& names) {
  constexpr size_t kShown = 12;
  std::string text;
  for (size_t i = 0; i < values.size() && i < kShown; ++i) {
    text +=
        format("{}{}{:.4g}", i > 0 ? ", " : "", i < names.size() ? names[i] + " " : "", values[i]);
  }
  return values.size() > kShown ? text + ", ..." : text;
}

// FIELD=SHAPE if the columns match the shape that the net declares; mismatches are reported later,
// with their place.
std::optional<std::string> FieldShape(const config::Column& column,
                                      const std::vector<config::NetInput>& declared) {
  for (const config::NetInput& input : declared) {
    const bool fits = input.name == column.input && input.shape.known() &&
                      input.shape.Size() == static_cast<int64_t>(column.columns.size());
    if (fits && input.shape.ndim() > 0)
      return format("{}={}", column.input,
                    join(std::vector<int64_t>(input.shape.begin(), input.shape.end()), "x"));
  }
  return std::nullopt;
}

// One column for an input of channels, height and width: paths of image files.
bool IsImage(const config::Column& column, const std::vector<config::NetInput>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const config::NetInput& input) {
    return input.name == column.input && column.columns.size() == 1 && input.shape.ndim() == 3 &&
           input.shape.Size() != 1;
  });
}

// Inputs of the net are data; all others are labels: those of losses, and those that only metrics
// read.
void AddColumns(const config::SourceConfig& c, const config::Net& net, Kwargs* kwargs) {
  std::vector<std::string> data, labels, shapes, images;
  for (const config::Column& column : c.columns) {
    const bool input =
        std::any_of(net.inputs.begin(), net.inputs.end(),
                    [&](const config::NetInput& i) { return i.name == column.input; });
    for (const std::string& name : column.columns)
      (input ? data : labels).push_back(format("{}={}", column.input, name));
    if (IsImage(column, net.inputs)) images.push_back(column.input);
    if (auto shape = FieldShape(column, input ? net.inputs : net.labels)) shapes.push_back(*shape);
  }
  if (!images.empty()) kwargs->emplace_back("picture_fields", params::Print(images));
  kwargs->emplace_back("data_fields", params::Print(data));
  kwargs->emplace_back("label_fields", params::Print(labels));
  kwargs->emplace_back("field_shapes", params::Print(shapes));
}

// How a table's cells are separated, and how empty ones are handled.
void AddReading(const config::SourceConfig& c, Kwargs* kwargs) {
  kwargs->emplace_back("delimiter", c.delimiter);
  kwargs->emplace_back("missing", c.missing);
}

bool TakesSplit(const std::string& source) {
  return source == "mnist" || source == "cifar10" || source == "cifar100";
}

Kwargs SourceParams(const config::SourceConfig& c, const config::Net& net,
                    const std::vector<std::string>& classes) {
  Kwargs kwargs{{"path", c.path}};
  if (TakesSplit(c.source) && !c.split.empty()) kwargs.emplace_back("split", c.split);
  if (!c.root.empty()) kwargs.emplace_back("root", c.root);
  if (!c.label_delim.empty()) kwargs.emplace_back("label_delim", c.label_delim);
  if (c.source == "csv") AddColumns(c, net, &kwargs);
  if (c.source == "csv") AddReading(c, &kwargs);
  const bool names_classes =
      c.source == "image_folder" || c.source == "list" || !c.label_delim.empty();
  if (names_classes && !classes.empty()) kwargs.emplace_back("classes", params::Print(classes));
  return kwargs;
}

// How many channels the net expects in its images.
std::optional<int64_t> ImageChannels(const io::Source& source,
                                     const std::vector<config::NetInput>& inputs) {
  const std::vector<io::FieldSpec>& fields = source.data_fields();
  for (const io::FieldSpec& field : fields) {
    if (field.kind != io::FieldKind::kImage) continue;
    for (const config::NetInput& input : inputs) {
      const bool meant = input.name == field.name || (fields.size() == 1 && inputs.size() == 1);
      if (meant && input.shape.ndim() == 3) return input.shape[0];
    }
  }
  return std::nullopt;
}

// The default metric of a loss.
const char* MetricOf(LossReport::Head::Kind kind) {
  using Kind = LossReport::Head::Kind;
  switch (kind) {
    case Kind::kLinear:
      return "rmse";
    case Kind::kAbsolute:
      return "mae";
    case Kind::kLogistic:
      return "multilabel_accuracy";
    default:
      return "accuracy";
  }
}

bool HasSoftmax(const Symbol& net) {
  const LossReport losses(net);
  return std::any_of(losses.heads().begin(), losses.heads().end(), [](const LossReport::Head& h) {
    return h.kind == LossReport::Head::Kind::kSoftmax;
  });
}

executor::MemoryBudget BudgetOf(const config::TrainConfig& train) {
  return {train.memory_budget.bytes, train.memory_budget.percent / 100};
}

// Frozen parameters come last and take precedence.
LrPatterns LrPatternsOf(const config::TrainConfig& train) {
  LrPatterns patterns = train.lr_mult;
  for (const std::string& pattern : train.freeze) patterns.emplace_back(pattern, 0);
  return patterns;
}

// Reports which device `auto` is, if there is a choice.
void TellAutoDevice(Runtime& runtime, Context device, report::Console& console) {
  if (device.type == DeviceType::kGPU) {
    console.Message(LogLevel::kInfo, format("--device auto: {}, {}", device.ToString(),
                                            runtime.backend(device).Describe(device.id).name));
  } else if (const std::string& why = FindAutoDevice().why_not; !why.empty()) {
    console.Message(LogLevel::kDebug, format("--device auto: the CPU, since {}", why));
  }
}

}  // namespace

std::shared_ptr<OperatorRegistry> MakeRegistry(const std::vector<std::string>& plugins,
                                               DeviceType device) {
  auto registry = BuiltinOperators(device);
  for (const std::string& path : plugins) registry->LoadPlugin(path);
  return registry;
}

std::vector<std::string> PublicOperators(const OperatorRegistry& registry) {
  std::vector<std::string> names = registry.Names();
  std::erase_if(names, [](const std::string& name) { return name.starts_with("_"); });
  return names;
}

std::unique_ptr<Runtime> MakeRuntime(const CommonFlags& flags, uint64_t seed,
                                     std::shared_ptr<const OperatorRegistry> registry,
                                     report::Console& console) {
  RuntimeOptions options;
  options.engine = flags.engine;
  options.threads = flags.threads;
  options.seed = seed;
  options.log =
      Logger([&console](LogLevel level, std::string_view text) { console.Message(level, text); });
  auto runtime = std::make_unique<Runtime>(options, std::move(registry));
  const std::vector<Context> devices = DevicesOf(flags);
  for (const Context device : devices) CheckDevice(runtime->backend(device), device);
  if (flags.device == "auto") TellAutoDevice(*runtime, devices[0], console);
  return runtime;
}

Session::Session(const ConfigArguments& arguments, const CommonFlags& flags,
                 report::Console& console)
    : console_(console),
      deterministic_(flags.deterministic),
      diagnostics_(std::make_shared<config::SourceMap>()),
      devices_(DevicesOf(flags)) {
  config::LoadRequest request = ToRequest(arguments);
  if (flags.seed) request.overrides.push_back(format("seed={}", *flags.seed));
  loaded_ = config::LoadConfig(request, &diagnostics_);
  FollowWeights();
  std::vector<std::string> plugins = flags.plugins;
  const std::vector<std::string>& wanted = loaded_.config.plugins;
  if (arguments.trusts_plugins) {
    plugins.insert(plugins.end(), wanted.begin(), wanted.end());
  } else {
    RequirePluginsNamed(wanted, plugins, arguments.file);
  }
  runtime_ = MakeRuntime(flags, loaded_.config.seed, MakeRegistry(plugins, ctx().type), console);
  if (loaded_.config.train.math == "tf32") {
    console.Message(
        LogLevel::kInfo,
        ctx().type == DeviceType::kGPU
            ? "train.math: tf32: operands of float32 products are rounded to 10 mantissa bits"
            : "train.math: tf32 is for GPUs; on the CPU it is the same as fast");
  }
}

// runs/latest changes: the resolved configuration names its current target.
void Session::FollowWeights() {
  std::string& file = loaded_.config.train.weights.file;
  const std::string run = FollowLink(file);
  if (file.empty() || run == file) return;
  console_.Message(LogLevel::kInfo, format("train.weights: {} is {}", file, run));
  file = run;
  loaded_.resolved.Find("train")->value.Find("weights")->value.Find("file")->value =
      config::Value::Scalar(run, {}, true);
}

void Session::CountEpochsFrom(int64_t first_epoch) {
  int64_t& epochs = loaded_.config.train.epochs;
  epochs = std::max<int64_t>(epochs - first_epoch, 0);
  config::Value& resolved = loaded_.resolved.Find("train")->value.Find("epochs")->value;
  resolved = config::Value::Scalar(std::to_string(epochs), resolved.place);
}

void Session::BuildNet(int64_t resumed_batch) {
  const auto classes = [this](std::string_view name) -> std::optional<int64_t> {
    const std::string& source = config().data.train.source;
    if (name != "classes" || source.empty()) return std::nullopt;
    if (diagnostics_.num_errors() > 0)
      return 1;  // report those first; any batch size will do to check the net
    if (source == "csv") return ClassesOfTable();
    OpenSource(false);
    if (class_names_.empty()) return std::nullopt;
    return static_cast<int64_t>(class_names_.size());
  };
  net_ = config::BuildNet(config(), runtime_->operators(), classes, &diagnostics_);
  diagnostics_.ThrowIfErrors();
  CheckInputOrder();
  try {
    net_.symbol.InferShape(
        config::BatchShapes(net_, std::max(config().data.batch_size, 1)));  // 0: not chosen yet
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    diagnostics_.Add(config::ToDiagnostic(net_, e, config().net.place));
  }
  CheckPatterns();
  ChooseMetrics();
  if (!config().data.train.label_delim.empty() && net_.labels.size() == 1 &&
      HasSoftmax(net_.symbol)) {
    diagnostics_.Error(
        loaded_.PlaceOf("data.train.label_delim"),
        "label_delim allows any number of classes, but SoftmaxOutput takes exactly one",
        "end the net with LogisticRegressionOutput");
  }
  diagnostics_.ThrowIfErrors();
  WeighClasses();
  for (const config::Diagnostic& d : diagnostics_.Sorted())
    console_.Message(LogLevel::kWarning, config::Render(d, diagnostics_.sources()));
  if (config().data.batch_size == 0) ChooseBatch(resumed_batch);
}

// Images are channels first; most other tools write channels last.
void Session::CheckInputOrder() {
  constexpr int64_t kMostChannels = 4;
  const config::SourceConfig& c = config().data.train;
  for (const config::NetInput& input : net_.inputs) {
    const bool images =
        c.source == "csv"
            ? std::any_of(c.columns.begin(), c.columns.end(),
                          [this](const auto& column) { return IsImage(column, net_.inputs); })
            : !c.source.empty();
    const TShape& s = input.shape;
    if (!images || s.ndim() != 3 || s[0] <= kMostChannels || s[2] > kMostChannels) continue;
    const config::Place& place =
        config().net.input.place ? config().net.input.place : config().net.inputs.place;
    diagnostics_.Error(
        place ? place : config().net.place,
        format("the input '{}' is {}: {} channels of {}x{}; the order is channels, height, width",
               input.name, s.ToString(), s[0], s[2], s[1]),
        format("write [{}, {}, {}]", s[2], s[0], s[1]));
  }
  diagnostics_.ThrowIfErrors();
}

// data.batch_size: auto. Stores the number in the configuration and its resolved form.
void Session::ChooseBatch(int64_t resumed_batch) {
  constexpr int64_t kMost = 256;  // larger ones need other learning rates and are not faster
  const auto bytes_of = [this](int64_t batch) {
    executor::BindRequest request = MakeBindRequest(true);
    request.shapes = config::BatchShapes(net_, batch);
    return TrainingBytes(*runtime_, net_.symbol, std::move(request), StatesOfTraining());
  };
  int64_t most = kMost;
  if (std::filesystem::exists(config().data.train.path))
    most = std::min(most, OpenSource(false)->size());
  const int64_t batch = resumed_batch > 0
                            ? resumed_batch
                            : PowerOfTwoWithin(FreeBytes(*runtime_, ctx()) / 2, most, bytes_of);
  loaded_.config.data.batch_size = static_cast<int>(batch);
  config::Member* data = loaded_.resolved.Find("data");
  data->value.Find("batch_size")->value = config::Value::Scalar(std::to_string(batch));
  console_.Message(LogLevel::kInfo,
                   resumed_batch > 0 ? format("batch_size: auto: {}, as in the resumed run", batch)
                                     : format("batch_size: auto: {}, which takes {}", batch,
                                              FormatBytes(bytes_of(batch))));
}

// Checks parameter name patterns against the parameters of the net.
void Session::CheckPatterns() {
  std::vector<std::string> parameters = net_.symbol.ListArguments();
  for (const auto* inputs : {&net_.inputs, &net_.labels}) {
    for (const config::NetInput& input : *inputs) std::erase(parameters, input.name);
  }
  const auto check = [&](const std::string& key, const std::string& pattern) {
    try {
      RequireMatch(pattern, parameters, "parameter");
    } catch (const Error& e) {
      diagnostics_.Error(loaded_.PlaceOf("train." + key), format("train.{}: {}", key, e.what()));
    }
  };
  for (const auto& [pattern, factor] : config().train.lr_mult) check("lr_mult", pattern);
  for (const std::string& pattern : config().train.freeze) check("freeze", pattern);
  for (const auto& [pattern, init] : config().train.initializers) check("initializers", pattern);
}

// If train.metrics is not given, uses the defaults of the first loss; the resolved configuration
// names them.
void Session::ChooseMetrics() {
  if (config().train.metrics) return;
  std::vector<config::Named> chosen;
  const LossReport losses(net_.symbol);
  const auto first = std::find_if(losses.heads().begin(), losses.heads().end(),
                                  [](const LossReport::Head& head) { return !head.label.empty(); });
  if (first != losses.heads().end()) chosen.push_back({MetricOf(first->kind), {}, {}});
  loaded_.resolved.Find("train")->value.members.push_back({"metrics", {}, config::Write(chosen)});
  loaded_.config.train.metrics = std::move(chosen);
  config::CheckMetrics(loaded_, &diagnostics_);
}

// train.class_weights becomes a parameter of the net's SoftmaxOutput. If that needs data that is
// missing, the code that reads the data reports it.
void Session::WeighClasses() {
  const config::ClassWeights& given = config().train.class_weights;
  if (given.empty() ||
      (given.numbers.empty() && !std::filesystem::exists(config().data.train.path)))
    return;
  if (given.numbers.empty()) OpenSource(false);
  try {
    const ClassifierHead head = FindClassifier(
        net_.symbol, config::BatchShapes(net_, std::max(config().data.batch_size, 1)));
    const std::vector<double> weights = ClassWeights(head);
    net_.symbol = WithClassWeights(runtime_->operators(), net_.symbol, head, weights);
    if (given.automatic)
      console_.Message(LogLevel::kInfo,
                       format("class_weights: auto: {}", ShortList(weights, class_names_)));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    diagnostics_.Error(loaded_.PlaceOf("train.class_weights"),
                       format("train.class_weights: {}", e.what()));
  }
  diagnostics_.ThrowIfErrors();
}

std::vector<double> Session::ClassWeights(const ClassifierHead& head) const {
  const config::ClassWeights& given = config().train.class_weights;
  if (given.automatic && config().data.train.balanced) {
    Throw(ErrorKind::kConfig,
          "auto and data.train.balanced both compensate for class imbalance: keep one of the two");
  }
  if (given.automatic)
    return BalancedWeights(io::CountClasses(*train_source_, head.label, head.classes));
  const auto classes = static_cast<size_t>(head.classes);
  if (!given.numbers.empty()) {
    if (given.numbers.size() != classes)
      Throw(ErrorKind::kConfig, "got {} numbers for the {} classes of the net",
            given.numbers.size(), classes);
    return given.numbers;
  }
  std::vector<std::string> names = class_names_;
  for (size_t k = 0; class_names_.empty() && k < classes; ++k) names.push_back(std::to_string(k));
  std::vector<double> weights(classes, 1);
  for (const auto& [name, weight] : given.by_name) {
    const auto found =
        std::find(names.begin(),
                  names.begin() + static_cast<ptrdiff_t>(std::min(classes, names.size())), name);
    const auto k = static_cast<size_t>(found - names.begin());
    if (k >= classes || k == names.size())
      Throw(ErrorKind::kConfig, "there is no class '{}'{}", name, DidYouMean(name, names));
    weights[k] = weight;
  }
  return weights;
}

std::shared_ptr<const io::Source> Session::OpenSource(bool validation) {
  std::shared_ptr<const io::Source>& source = validation ? val_source_ : train_source_;
  const config::SourceConfig& c = SourceOf(validation);
  if (source || c.source.empty()) return source;
  RequirePath(c);
  CheckColumns(c);
  source = io::MakeSource(c.source, DataParams(validation));
  if (!validation) class_names_ = source->class_names();
  if (!validation && c.source == "csv") CompleteTable();
  if (validation && HoldsOut()) return source;  // the training set has reported the warnings
  for (const std::string& text : source->remarks()) console_.Message(LogLevel::kWarning, text);
  return source;
}

void Session::RequirePath(const config::SourceConfig& c) const {
  if (std::filesystem::exists(c.path)) return;
  Throw(ErrorKind::kData,
        "{}: {} does not exist; paths are relative to the file that names them, on the command "
        "line to the working folder",
        diagnostics_.sources().Where(c.place), c.path);
}

// ${classes} of a table: the classes of its first label of words. Labels are the columns that are
// not inputs of the net, which is not built yet.
std::optional<int64_t> Session::ClassesOfTable() const {
  const config::SourceConfig& c = config().data.train;
  RequirePath(c);
  const config::Value& inputs = config().net.inputs;
  std::vector<std::string> labels;
  for (const config::Column& column : c.columns) {
    const bool input =
        inputs.is_map() ? inputs.Find(column.input) != nullptr : column.input == "data";
    for (const std::string& name : column.columns) {
      if (!input) labels.push_back(format("{}={}", column.input, name));
    }
  }
  if (labels.empty()) return std::nullopt;
  Kwargs kwargs{
      {"path", c.path}, {"label_fields", params::Print(labels)}, {"label_delim", c.label_delim}};
  AddReading(c, &kwargs);
  const int classes = io::MakeSource("csv", kwargs)->num_classes();
  return classes > 0 ? std::optional<int64_t>(classes) : std::nullopt;
}

// Labels of losses that take numbers.
std::vector<std::string> Session::Targets() const {
  std::vector<std::string> targets;
  const LossReport losses(net_.symbol);
  for (const LossReport::Head& head : losses.heads()) {
    const bool number = head.kind == LossReport::Head::Kind::kLinear ||
                        head.kind == LossReport::Head::Kind::kAbsolute;
    if (number && std::count(targets.begin(), targets.end(), head.label) == 0)
      targets.push_back(head.label);
  }
  return targets;
}

void Session::CheckTargets() const {
  const PipelineSpec table{"csv", table_params_, {}, {}};
  for (const std::string& target : Targets()) {
    const std::vector<std::string> classes = table.ClassesOf(target);
    if (classes.empty()) continue;
    Throw(ErrorKind::kConfig,
          "{}: the column of '{}' contains words ({}), but its loss takes numbers; use a numeric "
          "column, or end the net with SoftmaxOutput",
          diagnostics_.sources().Where(config().data.train.place), target, FirstOf(classes, 4));
  }
}

// The training set of a table determines means and deviations; other tables for this net use the
// same values.
void Session::CompleteTable() {
  table_params_ = train_source_->found();
  CheckTargets();
  const bool standardizes = config().data.train.normalize == "auto";
  const bool fills = SourceOf(false).missing == "mean" || SourceOf(true).missing == "mean";
  std::vector<std::string> fields, means, stds;
  for (const io::FieldSpec& field : train_source_->data_fields()) {
    if (field.kind == io::FieldKind::kValues && (standardizes || fills))
      fields.push_back(field.name);
  }
  const size_t inputs = fields.size();
  for (const std::string& target : standardizes ? Targets() : std::vector<std::string>())
    fields.push_back(target);
  if (fields.empty()) return;
  for (const io::ColumnStatistics& of : io::MeasureColumns(*train_source_, fields)) {
    for (const double mean : of.mean)
      means.push_back(format("{}={}", of.field, params::Print(mean)));
    for (const double std : of.std) stds.push_back(format("{}={}", of.field, params::Print(std)));
  }
  table_params_.emplace_back("field_means", params::Print(means));
  if (standardizes) table_params_.emplace_back("field_stds", params::Print(stds));
  train_source_ = io::MakeSource("csv", DataParams(false));
  if (!standardizes) return;
  console_.Message(
      LogLevel::kInfo,
      format("normalize: auto: means and standard deviations of {} columns, from {} rows{}",
             means.size(), train_source_->size(),
             fields.size() > inputs ? "; losses are of standardized labels, metrics and "
                                      "predictions in the labels' own units"
                                    : ""));
}

const config::SourceConfig& Session::SourceOf(bool validation) const {
  return validation && !HoldsOut() ? config().data.val : config().data.train;
}

Kwargs Session::DataParams(bool validation) const {
  Kwargs kwargs = SourceParams(SourceOf(validation), net_, class_names_);
  if (SourceOf(validation).source == "csv")
    kwargs.insert(kwargs.end(), table_params_.begin(), table_params_.end());
  if (!HoldsOut()) return kwargs;
  const config::SourceConfig& val = config().data.val;
  const Kwargs holdout = {{"holdout", params::Print(val.holdout)},
                          {"holdout_folds", params::Print(val.folds)},
                          {"holdout_fold", params::Print(val.fold)},
                          {"holdout_side", validation ? "held_out" : "rest"},
                          {"holdout_seed", std::to_string(config().seed)},
                          {"holdout_stratified", params::Print(val.stratified)}};
  kwargs.insert(kwargs.end(), holdout.begin(), holdout.end());
  return kwargs;
}

// Every input of the net must have columns before a table can be read.
void Session::CheckColumns(const config::SourceConfig& c) {
  if (c.source != "csv") return;
  std::vector<std::string> names;
  for (const config::Column& column : c.columns) names.push_back(column.input);
  for (const auto* wanted : {&net_.inputs, &net_.labels}) {
    for (const config::NetInput& input : *wanted) {
      if (std::find(names.begin(), names.end(), input.name) != names.end()) continue;
      diagnostics_.Error(c.place,
                         format("`columns` names no columns for the net's {} '{}'{}",
                                wanted == &net_.inputs ? "input" : "label", input.name,
                                DidYouMean(input.name, names)),
                         format("add {}: [COLUMN, ...] to columns", input.name));
    }
  }
  diagnostics_.ThrowIfErrors();
  if (net_.inputs.empty()) return;  // the net could not be built, which has been reported
  for (const std::string& name : names) {
    const auto same = [&name](const config::NetInput& input) { return input.name == name; };
    const std::vector<MetricSpec> metrics = Metrics();
    const bool read = std::any_of(net_.inputs.begin(), net_.inputs.end(), same) ||
                      std::any_of(net_.labels.begin(), net_.labels.end(), same) ||
                      std::any_of(metrics.begin(), metrics.end(),
                                  [&name](const MetricSpec& m) { return m.label == name; });
    if (!read)
      console_.Message(LogLevel::kWarning,
                       format("{}: columns '{}' are not read by any input, loss or metric",
                              diagnostics_.sources().Where(c.place), name));
  }
}

std::unique_ptr<DataIter> Session::MakeIter(std::shared_ptr<const io::Source> source,
                                            const config::SourceConfig& c, Pass pass) {
  io::PipelineParam p;
  Kwargs kwargs{{"batch_size", params::Print(config().data.batch_size)},
                {"mode", pass == Pass::kTraining ? "training" : "evaluation"},
                {"shuffle", params::Print(c.shuffle && pass != Pass::kWhole)},
                {"seed", std::to_string(config().seed)},
                {"max_bad", params::Print(config().data.max_bad)}};
  const int workers = config().data.workers == 0 && pass == Pass::kWhole
                          ? std::min(UsableCpuCount(), 256)
                          : config().data.workers;
  if (workers > 0) kwargs.emplace_back("workers", params::Print(workers));
  if (config().data.prefetch > 0)
    kwargs.emplace_back("prefetch", params::Print(config().data.prefetch));
  // An image source has one data and one label field; the net's names are given to them.
  if (source->data_fields().size() == 1 && net_.inputs.size() == 1)
    kwargs.emplace_back("data_name", net_.inputs[0].name);
  if (source->label_fields().size() == 1 && net_.labels.size() == 1)
    kwargs.emplace_back("label_name", net_.labels[0].name);
  if (const std::optional<int64_t> channels = ImageChannels(*source, net_.inputs))
    kwargs.emplace_back("channels", params::Print(*channels));
  kwargs.emplace_back("exact_decode",
                      params::Print(config().data.exact_decode || pass == Pass::kWhole));
  kwargs.emplace_back("cache", pass == Pass::kWhole ? "none" : config().data.cache);
  kwargs.emplace_back("cache_bytes", params::Print(config().data.cache_bytes));
  if (pass == Pass::kTraining) {
    kwargs.emplace_back("balanced", params::Print(c.balanced));
    AddMixing(&kwargs);
  }
  p.Init(kwargs, "data");
  if (pass == Pass::kTraining) CheckBatch(*source, c);
  p.Feed(ctx());
  MeasureFor(c);
  const std::vector<io::TransformSpec> transforms = Transforms(c);
  std::unique_ptr<DataIter> iter;
  try {
    iter = io::NewPipeline(*runtime_, std::move(source), transforms, p);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    const config::Place place = c.transforms.empty() ? c.place : c.transforms.back().place;
    Throw(ErrorKind::kConfig, "{}: {}", diagnostics_.sources().Where(place), e.what());
  }
  CheckIter(*iter, c, pass);
  return iter;
}

// Training uses only full batches.
void Session::CheckBatch(const io::Source& source, const config::SourceConfig& c) {
  const int64_t batch = config().data.batch_size;
  if (batch <= source.size()) return;
  const config::Place place = loaded_.PlaceOf("data.batch_size");
  diagnostics_.Error(
      place ? place : c.place,
      format("data.batch_size = {} exceeds the number of examples, {}", batch, source.size()),
      "use a smaller batch");
  diagnostics_.ThrowIfErrors();
}

// Labels of mixed examples are distributions, which the loss uses unchanged; the pipeline does the
// label smoothing.
void Session::AddMixing(Kwargs* pipeline) const {
  const config::TrainConfig& train = config().train;
  if (train.mixup.alpha == 0 && train.cutmix.alpha == 0) return;
  SoftLabelSpec labels;
  try {
    labels = FindSoftLabels(net_.symbol, config::BatchShapes(net_, config().data.batch_size));
  } catch (const Error&) {
    RethrowWithPrefix(std::current_exception(), "train.mixup, train.cutmix");
  }
  pipeline->emplace_back("soft_labels", params::Print(labels.classes));
  pipeline->emplace_back("label_smoothing", params::Print(labels.smoothing));
  const auto add = [&](const std::string& name, const config::MixConfig& mix) {
    pipeline->emplace_back(name, params::Print(mix.alpha));
    if (mix.off_epochs > 0)
      pipeline->emplace_back(name + "_epochs",
                             params::Print(std::max<int64_t>(train.epochs - mix.off_epochs, 0)));
  };
  add("mixup", train.mixup);
  add("cutmix", train.cutmix);
}

// `normalize: auto` is computed once on the training set, also for validation.
void Session::MeasureFor(const config::SourceConfig& c) {
  if (statistics_ || !io::WantsStatistics(ChainOf(c))) return;
  OpenSource(false);
  const int64_t channels = ImageChannels(*train_source_, net_.inputs).value_or(3);
  statistics_ = io::MeasurePixels(*train_source_, static_cast<int>(channels));
  const auto short_list = [](const std::vector<double>& values) {
    std::string text;
    for (double value : values) text += format("{}{:.4f}", text.empty() ? "" : ", ", value);
    return text;
  };
  console_.Message(LogLevel::kInfo, format("normalize: auto: mean [{}], std [{}], from {} images",
                                           short_list(statistics_->mean),
                                           short_list(statistics_->std), statistics_->images));
}

// Held-out data uses the training set's resizing and cropping unless it has its own transforms.
std::vector<io::TransformSpec> Session::ChainOf(const config::SourceConfig& c) const {
  const bool inherits = &c == &config().data.val && HoldsOut() && c.transforms.empty();
  return inherits ? io::EvaluationTransforms(ToTransforms(config().data.train.transforms))
                  : ToTransforms(c.transforms);
}

std::vector<io::TransformSpec> Session::Transforms(const config::SourceConfig& c) const {
  return statistics_ ? io::WithStatistics(ChainOf(c), *statistics_) : ChainOf(c);
}

// Shapes of the net's parameters when its images have this size.
std::vector<TShape> Session::ParameterShapes(const std::string& input, const TShape& size) const {
  std::map<std::string, TShape> known = config::BatchShapes(net_, 1);
  TShape& batch = known.at(input);
  for (int i = 0; i < size.ndim(); ++i) batch[i + 1] = size[i];
  const Symbol::Shapes shapes = net_.symbol.InferShape(known);
  const std::vector<std::string> names = net_.symbol.ListArguments();
  std::vector<TShape> parameters = shapes.auxiliaries;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!known.contains(names[i])) parameters.push_back(shapes.arguments[i]);
  }
  return parameters;
}

// Whether the net accepts images of another height and width with the same parameters: convolutions
// and a global pooling do, a fully connected layer on pixels does not.
bool Session::TakesSize(const config::NetInput& input, const TShape& size) const {
  if (size.ndim() != 3 || input.shape.ndim() != 3 || size[0] != input.shape[0]) return false;
  try {
    return ParameterShapes(input.name, size) == ParameterShapes(input.name, input.shape);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    return false;
  }
}

config::Place Session::DeclarationOf(const config::NetInput& input) const {
  const config::Value& inputs = config().net.inputs;
  const config::Member* member = inputs.is_map() ? inputs.Find(input.name) : nullptr;
  return member ? member->value.place : config().net.input.place;
}

// At the net's declaration if that comes from the command line, else at the data. No transform
// changes the columns of a table.
void Session::ReportShape(const config::NetInput& input, const TShape& given,
                          const config::SourceConfig& c) {
  const config::Place declared = DeclarationOf(input);
  const bool table = c.source == "csv" && given.ndim() == 1;
  const bool overridden = diagnostics_.sources().Where(declared) == "command line";
  const std::string key = config().net.inputs.is_map() ? "net.inputs." + input.name : "net.input";
  diagnostics_.Error(overridden ? declared : c.place,
                     format("the data has shape {} for input '{}', but the net declares {}",
                            given.ToString(), input.name, input.shape.ToString()),
                     table ? format("change {} to {}, or list {} columns for '{}' in `columns`",
                                    key, given.ToString(), input.shape.Size(), input.name)
                           : format("change {} to {}, or add a transform that produces {}", key,
                                    given.ToString(), input.shape.ToString()));
}

// Compares the shapes of the data with those that the net declares. Evaluation images may be larger
// or smaller than training images if the net accepts them.
void Session::CheckIter(const DataIter& iter, const config::SourceConfig& c, Pass pass) {
  std::vector<std::string> names;
  for (const DataDesc& desc : iter.provide_data()) names.push_back(desc.name);
  for (const config::NetInput& input : net_.inputs) {
    const auto descs = iter.provide_data();
    const auto found = std::find_if(descs.begin(), descs.end(),
                                    [&](const DataDesc& d) { return d.name == input.name; });
    if (found == descs.end()) {
      diagnostics_.Error(
          c.place,
          format("the data does not provide the net's input '{}'; it provides {}", input.name,
                 join(names, ", ")),
          "list the columns of each input in `columns`" + DidYouMean(input.name, names));
      continue;
    }
    const TShape given(
        std::span(found->shape.begin() + 1, static_cast<size_t>(found->shape.ndim() - 1)));
    if (given == input.shape || (pass != Pass::kTraining && TakesSize(input, given))) continue;
    ReportShape(input, given, c);
  }
  diagnostics_.ThrowIfErrors();
}

// Compares the classes of the data with those of the net.
void Session::CheckClassCount() {
  const LossReport loss(net_.symbol);
  if (class_names_.empty() || loss.heads().size() != 1 ||
      loss.heads()[0].kind != LossReport::Head::Kind::kSoftmax)
    return;
  const LossReport::Head& head = loss.heads()[0];
  const TShape output = net_.symbol.InferShape(config::BatchShapes(net_, config().data.batch_size))
                            .outputs[static_cast<size_t>(head.output)];
  const auto classes = static_cast<int64_t>(class_names_.size());
  if (output.ndim() != 2 || output[1] == classes) return;
  const std::string text = format("'{}' has {} classes, but the data has {} ({})", head.name,
                                  output[1], classes, FirstOf(class_names_, 12));
  if (output[1] > classes)
    return console_.Message(LogLevel::kWarning, text + "; the other outputs are unused");
  config::Diagnostic diagnostic =
      config::ToDiagnostic(net_, Error(ErrorKind::kConfig, text), config().net.place);
  diagnostic.help = "set num_hidden: ${classes} in the layer before it to follow the data";
  diagnostics_.Add(diagnostic);
  diagnostics_.ThrowIfErrors();
}

std::unique_ptr<DataIter> Session::TrainIter() {
  if (!OpenSource(false)) {
    diagnostics_.Error({}, "there is no data.train to train on",
                       "add data: {train: {source: ..., path: ...}}");
    diagnostics_.ThrowIfErrors();
  }
  CheckClassCount();
  return MakeIter(train_source_, config().data.train, Pass::kTraining);
}

std::shared_ptr<const io::Source> Session::EvaluationSource() {
  BuildNet();
  OpenSource(false);
  OpenSource(true);
  if (!val_source_ && !train_source_) Throw(ErrorKind::kData, "the configuration names no data");
  return val_source_ ? val_source_ : train_source_;
}

std::unique_ptr<DataIter> Session::ValIter() {
  OpenSource(false);  // its classes are also those of validation
  OpenSource(true);
  return val_source_ ? MakeIter(val_source_, config().data.val, Pass::kEvaluation) : nullptr;
}

std::unique_ptr<DataIter> Session::WholeIter(bool validation) {
  return MakeIter(OpenSource(validation), validation ? config().data.val : config().data.train,
                  Pass::kWhole);
}

std::vector<MetricSpec> Session::Metrics() const {
  std::vector<MetricSpec> specs;
  for (const config::Named& m : config().train.metrics.value_or(std::vector<config::Named>())) {
    MetricSpec spec{m.name, {}, "", ""};
    for (const auto& [key, value] : m.params) {
      if (key == "output") {
        spec.output = value;
      } else if (key == "label") {
        spec.label = value;
      } else {
        spec.params.emplace_back(key, value);
      }
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::vector<Context> Session::Workers() const {
  const int shares = std::max(config().train.kvstore.workers, 1);
  if (devices_.size() == 1) return std::vector<Context>(static_cast<size_t>(shares), ctx());
  if (shares > 1) {
    Throw(ErrorKind::kConfig,
          "train.kvstore.workers={} splits a batch on one device, but --device splits it over {}; "
          "remove one of them",
          shares, devices_.size());
  }
  return devices_;
}

std::string Session::DeviceNames() const {
  std::vector<std::string> names;
  for (const Context device : devices_) names.push_back(device.ToString());
  return format("{}", join(names, ", "));
}

// Only those that affect how nets are bound.
TrainOptions Session::BindingOptions() const {
  const config::TrainConfig& t = config().train;
  TrainOptions o;
  o.symbol = net_.symbol;
  o.workers = Workers();
  o.modes = ModesOf(t.math, t.amp, deterministic_);
  o.grad_accum = t.grad_accum;
  o.lr_mult = LrPatternsOf(t);
  o.memory_budget = BudgetOf(t);
  return o;
}

TrainOptions Session::MakeTrainOptions() const {
  const config::TrainConfig& t = config().train;
  TrainOptions o = BindingOptions();
  o.epochs = t.epochs;
  o.max_steps = t.max_steps;
  o.optimizer = {t.optimizer.name, t.optimizer.params};
  if (t.clip.value) o.optimizer.params.emplace_back("clip_gradient", params::Print(*t.clip.value));
  o.clip_norm = t.clip.norm;
  o.lr_schedule = {t.lr_schedule.name, t.lr_schedule.params};
  o.initializer = {t.initializer.name, t.initializer.params};
  for (const auto& [pattern, init] : t.initializers)
    o.initializers.push_back({pattern, {init.name, init.params}});
  o.metrics = Metrics();
  o.best_metrics = t.best.metric;
  o.early_stop = {t.early_stop.patience, t.early_stop.min_delta, t.early_stop.target};
  o.time_limit_seconds = static_cast<double>(t.time_limit.seconds);
  o.report_steps = t.report_every;
  o.average_decay = t.ema.decay;
  o.measure_kernels = t.measure_kernels;
  o.kvstore =
      t.kvstore.type == "auto" ? (devices_.size() > 1 ? "device" : "local") : t.kvstore.type;
  o.save = {0, 0, 0, t.save.keep};
  if (t.save.every.unit == config::Interval::Unit::kEpochs)
    o.save.every_epochs = t.save.every.count;
  if (t.save.every.unit == config::Interval::Unit::kSteps) o.save.every_steps = t.save.every.count;
  if (t.save.every.unit == config::Interval::Unit::kSeconds)
    o.save.every_seconds = static_cast<double>(t.save.every.count);
  o.model.class_names = class_names_;
  const bool validates = HoldsOut() || !config().data.val.source.empty();
  const config::SourceConfig& chain = validates ? config().data.val : config().data.train;
  o.model.pipeline = PipelineSpec{SourceOf(validates).source, DataParams(validates),
                                  Transforms(chain), Metrics(), config().data.exact_decode}
                         .ToJson();
  o.model.config = config::ToYaml(loaded_.resolved);
  if (train_source_) o.model.train_data = io::Fingerprint(*train_source_);
  if (val_source_) o.model.val_data = io::Fingerprint(*val_source_);
  return o;
}

KeptStates Session::StatesOfTraining() const {
  const config::Named& optimizer = config().train.optimizer;
  return {Optimizer::Create(optimizer.name, optimizer.params)->NumStates(),
          config().train.ema.decay.has_value()};
}

executor::BindRequest Session::MakeBindRequest(bool training) const {
  const std::map<std::string, TShape> shapes = config::BatchShapes(net_, config().data.batch_size);
  std::vector<DataDesc> arrays;
  for (const auto* inputs : {&net_.inputs, &net_.labels}) {
    for (const config::NetInput& input : *inputs) {
      const auto known = shapes.find(input.name);  // a label may have no declared shape
      arrays.push_back({input.name, known == shapes.end() ? TShape() : known->second, input.dtype});
    }
  }
  const TrainOptions options = BindingOptions();
  return training ? TrainingRequest(options, net_.symbol, arrays)
                  : EvaluationRequest(net_.symbol, arrays, ctx(), options.modes);
}

}  // namespace mxtrain::commands
