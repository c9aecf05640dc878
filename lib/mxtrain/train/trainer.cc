// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/trainer.h"

#include <algorithm>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/fingerprint.h"
#include "mxtrain/train/block_losses.h"
#include "mxtrain/train/example_weights.h"
#include "mxtrain/train/internal/lone_values.h"
#include "mxtrain/train/internal/trainer_impl.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain {
namespace {

std::vector<InputInfo> PerExample(const std::vector<DataDesc>& descs) {
  std::vector<InputInfo> infos;
  for (const DataDesc& desc : descs) {
    if (io::IsBesideLabels(desc.name)) continue;  // of batches, not of the net
    TShape shape(std::span(desc.shape.begin() + 1, static_cast<size_t>(desc.shape.ndim() - 1)));
    infos.push_back({desc.name, shape, desc.type});
  }
  return infos;
}

void CheckWorkers(const TrainOptions& options, const DataIter& train) {
  const size_t workers = options.workers.size();
  if (workers < 1 || train.batch_size() % static_cast<int64_t>(workers) != 0) {
    Throw(ErrorKind::kConfig, "a batch of {} cannot be divided among {} workers",
          train.batch_size(), workers);
  }
}

void CheckCarry(const TrainOptions& options) {
  if (options.model.carry.empty()) return;
  const char* what = options.group      ? "several processes"
                     : options.features ? "features that are computed once"
                                        : nullptr;
  if (what)
    Throw(ErrorKind::kConfig, "states that go on from batch to batch are not supported with {}",
          what);
}

// What computes over all parameters at once needs them on one device.
void CheckPlacement(const TrainOptions& options) {
  const Context own = options.workers[0];
  const auto& groups = options.modes.group2ctx;
  if (std::all_of(groups.begin(), groups.end(), [&](auto& group) { return group.second == own; }))
    return;
  const char* what = options.clip_norm            ? "clipping by the global norm"
                     : options.average_decay      ? "an average of the weights"
                     : options.kvstore != "local" ? "a kvstore other than local"
                                                  : nullptr;
  if (what)
    Throw(ErrorKind::kConfig,
          "{} is not supported for a net on several devices; remove one of them", what);
}

// Each rank takes an equal part of the batch, and each of its GPUs an equal part of that.
void CheckGpus(const TrainOptions& options) {
  const std::vector<std::string> all =
      options.group->GatherText(Counted(std::ssize(options.workers), "GPU"));
  for (size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    Throw(ErrorKind::kUsage,
          "rank 0 trains on {}, rank {} on {}: all ranks need the same number (--device)", all[0],
          r, all[r]);
  }
}

int RanksOf(const TrainOptions& options) {
  return options.group ? options.group->size() : 1;
}

std::map<std::string, TShape> BatchShapesOf(const DataIter& train) {
  std::map<std::string, TShape> shapes;
  for (const DataDesc& desc : ArraysOf(train)) shapes[desc.name] = desc.shape;
  return shapes;
}

// The options with the parts of the model that follow from net and data.
TrainOptions Complete(const OperatorRegistry& operators, TrainOptions options,
                      const DataIter& train, const DataIter* val) {
  CheckWorkers(options, train);
  CheckCarry(options);
  CheckPlacement(options);
  options.model.symbol_json =
      (options.model.lora ? options.without_factors : options.symbol).ToJson();
  // A model's inputs are those that it was evaluated on.
  options.model.inputs = PerExample((val ? *val : train).provide_data());
  options.model.labels = PerExample(train.provide_label());
  options.model.batch_size = train.batch_size() * RanksOf(options);
  if (!options.features) {
    options.symbol = WithLossesInBlocks(operators, options.symbol,
                                        {.ctx = options.workers[0],
                                         .modes = options.modes,
                                         .shapes = BatchShapesOf(train),
                                         .metrics = options.metrics,
                                         .watched = options.watch.show != nullptr,
                                         .weighed = HasExampleWeights(train)});
  }
  options.gpus_of_ranks = options.kvstore == "dist_device_sync";
  if (options.gpus_of_ranks && options.group) CheckGpus(options);
  if (options.group)
    options.first_replica = options.group->rank() * static_cast<int>(options.workers.size());
  return options;
}

void CheckLosses(const LossReport& loss, const std::vector<DataDesc>& labels) {
  if (loss.heads().empty())
    Throw(ErrorKind::kConfig,
          "the net has no loss; end it in a loss operator such as SoftmaxOutput");
  for (const LossReport::Head& head : loss.heads()) {
    if (head.label.empty() || std::any_of(labels.begin(), labels.end(), [&](const DataDesc& desc) {
          return desc.name == head.label;
        }))
      continue;
    Throw(ErrorKind::kConfig, "the training data have no label '{}', which '{}' needs", head.label,
          head.name);
  }
}

// Of the training batches, which some metrics do not measure where there are validation data.
EpochScores ScoresOf(const TrainOptions& options, const DataIter& train, bool validates) {
  std::vector<MetricSpec> metrics = options.metrics;
  std::erase_if(metrics, [validates](const MetricSpec& spec) {
    return validates && Metric::Create(spec.name, spec.params)->for_evaluation();
  });
  EpochScores scores(options.symbol, metrics, train.provide_label());
  CheckLosses(scores.loss(), train.provide_label());
  return scores;
}

BestEpochs BestOf(const TrainOptions& options, const DataIter& train) {
  const MetricSet metrics(options.symbol, LossReport(options.symbol), options.metrics,
                          train.provide_label());
  if (!options.best_metrics.empty()) return BestEpochs(options.best_metrics, metrics);
  return BestEpochs({metrics.Names().empty() ? "loss" : metrics.Names()[0]}, metrics);
}

// The position of an output determines its class: renamed, added or removed folders would change
// its meaning.
void CheckClasses(const std::vector<std::string>& before, const std::vector<std::string>& now) {
  constexpr size_t kMostNamed = 12;
  if (before.empty() || now.empty() || before == now) return;
  Throw(ErrorKind::kConfig,
        "the run was trained on {} classes ({}), the data now have {} ({}); restore their names, "
        "or start a new run with "
        "train.weights, which loads what still matches",
        before.size(), FirstOf(before, kMostNamed), now.size(), FirstOf(now, kMostNamed));
}

// In dist_async a rank's gradient makes an update of its own: what is divided by is its batch.
GradientScale ScaleOf(const TrainOptions& options) {
  GradientScale scale;
  const int ranks = RanksOf(options), summed = options.kvstore == "dist_async" ? 1 : ranks;
  scale.factor = RescaleGrad(options.symbol, options.model.batch_size / ranks * summed,
                             static_cast<int>(options.workers.size()) * summed, &scale.reason) /
                 static_cast<double>(options.grad_accum);
  if (options.grad_accum > 1)
    scale.reason += format(", summed over {} batches", options.grad_accum);
  return scale;
}

int64_t BytesOf(const std::map<std::string, NDArray>& arrays) {
  int64_t bytes = 0;
  for (const auto& [name, array] : arrays) bytes += array.spec().Bytes();
  return bytes;
}

}  // namespace

Trainer::Impl::Impl(Runtime& on, TrainOptions given, DataIter& training, DataIter* validation)
    : runtime(on),
      options(Complete(on.operators(), std::move(given), training, validation)),
      train(training),
      val(validation),
      symbol(options.symbol),
      lr_mult(options.lr_mult),
      ranks(options.group),
      scores(ScoresOf(options, train, val != nullptr)),
      best(BestOf(options, train)),
      progress(runtime, options, train),
      rescale_grad(ScaleOf(options)) {
  try {
    Bind(!options.freeze.patterns.empty());
  } catch (...) {
    ranks.Fail(std::current_exception());
    throw;
  }
}

void Trainer::Impl::Bind(bool with_freeze, std::optional<int64_t> unfrozen_step) {
  batches.reset();
  updates.reset();
  watch.reset();
  net.reset();
  features.reset();
  frozen = with_freeze;
  options.symbol = symbol;
  options.lr_mult = lr_mult;
  if (frozen) {
    for (const std::string& pattern : options.freeze.patterns)
      options.lr_mult.emplace_back(pattern, 0);
    if (options.freeze.fix_statistics)
      options.symbol = WithFixedStatistics(runtime.operators(), symbol, options.lr_mult);
  }
  RequireSeveralValues(options,
                       OnBatchesOf(train, runtime.operators(),
                                   frozen && options.freeze.Unfreezes() ? symbol : options.symbol),
                       ArraysOf(train));
  if (options.features && (frozen || !options.freeze.Unfreezes()))
    features = std::make_unique<FeatureCache>(runtime, options, train, val);
  BoundNet::Part part{options.symbol, {}, {}};
  if (features) part = {features->head(), features->args(), features->auxs()};
  net = std::make_unique<BoundNet>(runtime, options, std::move(part), TrainData(),
                                   features ? features->val() : val);
  Watch();
  updates = std::make_unique<ParameterUpdates>(runtime, options, *net, rescale_grad.factor,
                                               unfrozen_step);
  batches = std::make_unique<BatchesInFlight>(runtime, options.workers, TrainData(), scores);
}

// What a pattern matches may begin to learn only later, when its misspelling ends no run any more.
void Trainer::Impl::Watch() {
  if (!options.watch.show) return;
  watch = std::make_unique<StepWatch>(options.watch, net->first(), net->args(), net->auxs());
  try {
    watch->RequireMatch();
  } catch (const Error& e) {
    if (!options.freeze.Unfreezes()) throw;
    runtime.log("train").Warning("{}{}", e.what(), frozen ? ", while layers are frozen" : "");
  }
}

void Trainer::Impl::Unfreeze() {
  BindUnfrozen();
  runtime.log("train").Info("epoch {}: the frozen parameters learn from here on",
                            progress.state().epoch + 1);
}

void Trainer::Impl::BindUnfrozen() {
  runtime.engine().WaitForAll();
  progress.Unfreeze();
  const Checkpoint now = Snapshot(updates->Gather(/*keep=*/true));
  Bind(/*frozen=*/false, now.state.unfrozen_step);
  net->Restore(now, of_base);
  updates->RestoreStates(now.optimizer);
  updates->RestoreResiduals(now);
  updates->RestoreAverages(now);
  updates->RestoreLossScale(now.state.loss_scale);
  updates->SetWarmup(progress.WarmupSteps());
}

void Trainer::Impl::CompareData(bool validates, const std::string& then, const std::string& now,
                                bool extend) const {
  if (then.empty() || now.empty() || io::MayBeSameData(then, now)) return;
  const std::string text =
      format("the {} data differ from those of the checkpoint: {} then, {} now",
             validates ? "validation" : "training", then, now);
  const Logger log = runtime.log("train");
  // A run is extended on data that grew; metrics of other examples do not compare with earlier
  // ones.
  extend && !validates ? log.Info("{}", text) : log.Warning("{}", text);
}

WeightsAccount Trainer::Impl::Begin(const std::map<std::string, NDArray>& weights,
                                    const BaseFile& file) {
  WeightsAccount account = net->Take(weights);
  if (!options.model.lora || account.taken.empty()) return account;
  std::set<std::string> reset;
  for (const WeightsAccount::Reset& array : account.reset) reset.insert(array.name);
  std::vector<std::string> base, missing;
  for (const auto& [name, array] : net->args()) {
    if (net->first().grads().contains(name)) continue;
    // Constants of the net, such as masks, are in the checkpoint if the file lacks them.
    const bool constant = FindMultipliers(name, AttrsOf(symbol, name), {}).lr == 0;
    if (!reset.contains(name)) {
      base.push_back(name);
    } else if (!constant) {
      missing.push_back(name);
    }
  }
  if (!missing.empty()) {
    Throw(ErrorKind::kConfig,
          "LoRA keeps what it does not train in the file of the base, but {} lacks {} of these "
          "arrays, or has them in another shape ({}); train them too (train.lora.whole)",
          file.file, missing.size(), FirstOf(missing, 3));
  }
  of_base = {base.begin(), base.end()};
  for (const LoraFactors& names : options.model.lora->factors) {
    std::erase_if(account.reset, [&](const WeightsAccount::Reset& array) {
      return array.name == names.a || array.name == names.b;
    });
  }
  options.model.lora->base = file;
  options.model.lora->base.checksum = BaseChecksum(weights, base);
  return account;
}

void Trainer::Impl::RequireSameBase(const ModelInfo& before) const {
  const std::optional<LoraInfo>& now = options.model.lora;
  if (before.lora.has_value() != now.has_value()) {
    Throw(ErrorKind::kConfig,
          "the checkpoint was made {} train.lora, this run is {} it; start a new run with "
          "train.weights",
          before.lora ? "with" : "without", now ? "with" : "without");
  }
  if (!now || now->base.checksum == before.lora->base.checksum) return;
  Throw(ErrorKind::kConfig,
        "the checkpoint holds what LoRA added to {}; the weights of {} are others (checksum {} "
        "then, {} now)",
        before.lora->base.file, now->base.file, before.lora->base.checksum, now->base.checksum);
}

void Trainer::Impl::Resume(const Checkpoint& checkpoint, bool extend) {
  const TrainState& state = checkpoint.state;
  ResourceManager& resources = runtime.resources();
  if (state.seed != resources.seed()) {
    Throw(ErrorKind::kConfig,
          "the checkpoint was made with seed {}, the run has seed {}; resume with --seed {}",
          state.seed, resources.seed(), state.seed);
  }
  CheckClasses(checkpoint.model.class_names, options.model.class_names);
  RequireSameBase(checkpoint.model);
  const bool was_frozen = state.unfrozen_step == 0;
  if (options.freeze.Unfreezes() && state.epoch >= options.freeze.epochs)
    Bind(/*frozen=*/false, was_frozen ? state.step : state.unfrozen_step);
  net->Restore(checkpoint, of_base);
  resources.Restore({state.seed, state.random_calls});
  updates->RestoreStates(checkpoint.optimizer);
  updates->RestoreResiduals(checkpoint);
  CompareData(/*validates=*/false, checkpoint.model.train_data, options.model.train_data, extend);
  CompareData(/*validates=*/true, checkpoint.model.val_data, options.model.val_data, extend);
  if (state.threads != progress.state().threads) {
    runtime.log("train").Warning(
        "the checkpoint was made with {}{}, this run has {}: results may differ in the last bits",
        Counted(state.threads, "thread"), runtime.options().cpu_workers > 1 ? " per worker" : "",
        progress.state().threads);
  }
  best.Restore(state.best);
  if (ranks.first()) {  // of the examples of all ranks
    scores.metrics().RestoreState(state.metric_states);
    scores.loss().RestoreState(state.loss_state);
  }
  updates->RestoreAverages(checkpoint);
  updates->RestoreLossScale(state.loss_scale);
  progress.Resume(checkpoint);
  if (options.freeze.Unfreezes() && !frozen && was_frozen) progress.Unfreeze();
  if (extend) progress.Extend(state);
  if (!frozen) updates->SetWarmup(progress.WarmupSteps());
  if (!extend) return;
  extended = true;
  const int64_t steps = progress.steps_left();
  runtime.log("train").Info(
      "extended by {} steps; the schedule '{}' restarts at a learning rate of {:.3g} and ends at "
      "{:.3g}",
      steps, options.lr_schedule.name, LearningRate(0),
      LearningRate(std::max<int64_t>(steps - 1, 0)));
}

RunStart Trainer::Impl::Describe() const {
  RunStart s;
  for (const auto& [name, array] : net->args()) s.parameters += array.shape().Size();
  for (const auto& [name, array] : net->first().grads())
    s.learning_parameters += array.shape().Size();
  s.train_examples = train.examples();
  s.val_examples = val ? val->examples() : 0;
  s.steps_per_epoch = progress.steps_per_epoch();
  s.total_steps = progress.total_steps();
  s.first_step = progress.state().step;
  for (const auto& executor : net->executors()) {
    s.arena_bytes += executor->arena_bytes();
    s.parameter_bytes += BytesOf(executor->args()) + BytesOf(executor->auxs());
    s.gradient_bytes += BytesOf(executor->grads());
  }
  if (features) s.parameter_bytes += BytesOf(features->args()) + BytesOf(features->auxs());
  s.optimizer_bytes = updates->num_devices() * BytesOf(updates->States());
  if (updates->average()) s.average_bytes = BytesOf(updates->average()->Arrays());
  s.rescale_grad = rescale_grad.factor;
  s.rescale_reason = rescale_grad.reason;
  return s;
}

Checkpoint Trainer::Impl::Snapshot(ParameterUpdates::OfRanks of_ranks) const {
  Checkpoint c;
  c.model = options.model;
  if (KernelChoices* choices = ChoicesOf(runtime.backend(options.workers[0])))
    c.model.kernel_choices = choices->kept();
  c.state = progress.Save();
  c.state.best = best.values();
  c.state.loss_scale = updates->ReadLossScale();
  const RandomState random = runtime.resources().State();
  c.state.seed = random.seed;
  c.state.random_calls = random.step;
  c.state.random_step = net->first().random_step();
  c.state.metric_states = scores.metrics().SaveState();
  c.state.loss_state = scores.loss().SaveState();
  c.args = net->args();
  for (const std::string& name : of_base) c.args.erase(name);
  c.auxs = net->auxs();
  c.carried = net->CarriedArrays();
  c.optimizer = std::move(of_ranks.states);
  c.residuals = std::move(of_ranks.residuals);
  const WeightAverage* average = updates->average();
  c.state.average_updates = average ? average->updates() : 0;
  if (average && average->updates() > 0) c.averages = average->Arrays();
  return c;
}

Trainer::Trainer(Runtime& runtime, TrainOptions options, DataIter& train, DataIter* val)
    : impl_(std::make_unique<Impl>(runtime, std::move(options), train, val)) {}
Trainer::~Trainer() = default;

void Trainer::SaveTo(const std::string& folder) {
  impl_->options.checkpoint_folder = folder;
}
std::map<std::string, NDArray> Trainer::Arrays() const {
  std::map<std::string, NDArray> arrays = impl_->net->args();
  arrays.merge(impl_->net->auxs());
  return arrays;
}
void Trainer::Resume(const Checkpoint& checkpoint, bool extend) {
  impl_->Resume(checkpoint, extend);
}
WeightsAccount Trainer::Begin(const std::map<std::string, NDArray>& weights, const BaseFile& file) {
  return impl_->Begin(weights, file);
}
TrainResult Trainer::Run(TrainListener& listener, std::atomic<int>* stop) {
  return impl_->Run(listener, stop);
}
const TrainResult& Trainer::result() const {
  return impl_->result;
}
void Trainer::Step(const DataBatch& batch) {
  impl_->Step(batch);
}
double Trainer::push_seconds() const {
  return impl_->push_seconds;
}
void Trainer::Rehearse() {
  impl_->Rehearse();
}
Executor& Trainer::executor() {
  return impl_->net->first();
}
const BestValue& Trainer::best() const {
  return impl_->best.first();
}
bool Trainer::HigherIsBetter() const {
  return impl_->best.HigherIsBetter();
}
int64_t Trainer::total_steps() const {
  return impl_->progress.total_steps();
}
bool Trainer::finished() const {
  return impl_->progress.finished();
}

}  // namespace mxtrain
