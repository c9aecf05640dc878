// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/base/glob.h"
#include "mxtrain/executor/step_sequences.h"
#include "mxtrain/initializer/initializer.h"
#include "mxtrain/operator/imperative.h"

namespace mxtrain {
namespace {

const Attrs& AttrsOf(const Symbol& symbol, const std::string& variable) {
  static const Attrs kNone;
  for (const Node& node : symbol.graph().nodes) {
    if (node.is_variable() && node.name == variable) return node.attrs;
  }
  return kNone;
}

std::vector<InputInfo> PerExample(const std::vector<DataDesc>& descs) {
  std::vector<InputInfo> infos;
  for (const DataDesc& desc : descs) {
    TShape shape(std::span(desc.shape.begin() + 1, static_cast<size_t>(desc.shape.ndim() - 1)));
    infos.push_back({desc.name, shape, desc.type});
  }
  return infos;
}

std::vector<std::string> BestMetrics(const TrainOptions& options, const MetricSet& metrics) {
  if (!options.best_metrics.empty()) return options.best_metrics;
  return {metrics.Names().empty() ? "loss" : metrics.Names()[0]};
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

// The checkpoint's array for a parameter; throws if the shape differs.
void Restore(const std::map<std::string, NDArray>& from, const std::string& what,
             const std::map<std::string, NDArray>& to) {
  for (const auto& [name, target] : to) {
    const auto found = from.find(name);
    if (found == from.end())
      Throw(ErrorKind::kConfig,
            "the checkpoint has no {} '{}': it belongs to another net or another optimizer", what,
            name);
    if (!(found->second.shape() == target.shape())) {
      Throw(ErrorKind::kConfig,
            "{} '{}' is {} in the checkpoint and {} in the net: they do not belong together", what,
            name, found->second.shape().ToString(), target.shape().ToString());
    }
    NDArray(target).CopyFrom(found->second);
  }
}

bool OnOneDevice(const std::vector<Context>& workers) {
  return std::all_of(workers.begin(), workers.end(),
                     [&](Context device) { return device == workers[0]; });
}

executor::MemoryBudget BudgetOn(Context device, const TrainOptions& options) {
  return options.memory_budget.Among(
      std::count(options.workers.begin(), options.workers.end(), device));
}

}  // namespace

bool TrainsParameter(const Symbol& symbol, const std::string& name, const LrPatterns& lr_mult) {
  return FindMultipliers(name, AttrsOf(symbol, name), lr_mult).lr != 0;
}

Executor::BindRequest TrainingRequest(const TrainOptions& options, const Symbol& net,
                                      std::span<const DataDesc> arrays) {
  Executor::BindRequest request = EvaluationRequest(net, arrays, options.workers[0], options.modes);
  request.is_train = true;
  request.capture_passes = OnOneDevice(
      options.workers);  // across several, gradient aggregation starts as gradients become ready
  request.memory_budget = BudgetOn(options.workers[0], options);
  for (auto& [name, shape] : request.shapes)
    shape[0] /= static_cast<int64_t>(options.workers.size());
  for (const std::string& name : options.symbol.ListArguments()) {
    if (request.inputs.contains(name) || !TrainsParameter(options.symbol, name, options.lr_mult))
      continue;
    request.grad_req[name] =
        options.grad_accum > 1 ? executor::GradReq::kAdd : executor::GradReq::kWrite;
  }
  return request;
}

Trainer::Trainer(Runtime& runtime, TrainOptions options, DataIter& train, DataIter* val)
    : runtime_(runtime),
      options_(std::move(options)),
      train_(train),
      val_(val),
      scores_(options_.symbol, options_.metrics, train_.provide_label()),
      best_(BestMetrics(options_, scores_.metrics()), scores_.metrics()) {
  if (scores_.loss().heads().empty())
    Throw(ErrorKind::kConfig,
          "the net has no loss; end it in a loss operator such as SoftmaxOutput");
  if (options_.early_stop.patience > 0)
    early_stop_.emplace(options_.early_stop.patience, options_.early_stop.min_delta);
  CheckWorkers();
  for (const DataDesc& desc : train_.provide_label()) label_names_.push_back(desc.name);
  CheckLabels();
  steps_per_epoch_ = train_.batches_per_epoch() / options_.grad_accum;
  if (steps_per_epoch_ < 1) {
    Throw(ErrorKind::kData, "the training data hold {} examples, fewer than {} of {}",
          train_.examples(),
          options_.grad_accum == 1 ? "one batch"
                                   : format("a step of {} batches", options_.grad_accum),
          train_.batch_size());
  }
  PlanSteps();
  rescale_grad_ =
      RescaleGrad(options_.symbol, train_.batch_size(), num_workers(), &rescale_reason_) /
      static_cast<double>(options_.grad_accum);
  if (options_.grad_accum > 1)
    rescale_reason_ += format(", summed over {} batches", options_.grad_accum);

  options_.model.symbol_json = options_.symbol.ToJson();
  options_.model.inputs = PerExample(
      (val_ ? *val_ : train_).provide_data());  // a model's inputs are those it was evaluated on
  options_.model.labels = PerExample(train_.provide_label());
  options_.model.batch_size = train_.batch_size();
  state_.seed = runtime_.options().seed;
  state_.threads = runtime_.backend(first_device()).threads();
  sums_ = runtime_.engine().NewVar();
  for (int i = 0; i < 2; ++i) batch_marks_.push_back(runtime_.engine().NewVar());
  for (int w = 0; w < num_workers(); ++w) ends_.push_back(runtime_.engine().NewVar());
  ended_ = runtime_.engine().NewVar();

  MeasureAndBind();
  input_order_.emplace(*executors_[0], train_);
  InitializeParameters();
  MakeUpdater();
  MakeLossScale();
}

Trainer::~Trainer() {
  // Steps in flight use members; Run does not wait for them if it throws.
  for (engine::VarHandle var : {sums_, ended_}) runtime_.Drain(var);
  for (engine::VarHandle var : {sums_, ended_})
    runtime_.engine().DeleteVariable(var, {}, first_device());
  for (const auto* marks : {&batch_marks_, &ends_}) {
    for (engine::VarHandle mark : *marks)
      runtime_.engine().DeleteVariable(mark, {}, first_device());
  }
}

void Trainer::CheckWorkers() const {
  if (num_workers() < 1 || train_.batch_size() % num_workers() != 0) {
    Throw(ErrorKind::kConfig, "a batch of {} cannot be divided among {} workers",
          train_.batch_size(), num_workers());
  }
}

void Trainer::CheckLabels() const {
  for (const LossReport::Head& head : scores_.loss().heads()) {
    if (head.label.empty() ||
        std::find(label_names_.begin(), label_names_.end(), head.label) != label_names_.end())
      continue;
    Throw(ErrorKind::kConfig, "the training data have no label '{}', which '{}' needs", head.label,
          head.name);
  }
}

// Uses the choices of the resumed run and measures missing ones.
void Trainer::MeasureAndBind() {
  KernelChoices* choices = ChoicesOf(runtime_.backend(first_device()));
  if (choices) choices->Keep(options_.model.kernel_choices);
  const KernelChoices::Table before = choices ? choices->kept() : KernelChoices::Table();
  {
    const KernelChoices::Measuring allowed(
        options_.measure_kernels && !options_.modes.deterministic ? choices : nullptr);
    BindExecutors();
  }
  if (!choices || choices->kept().size() == before.size()) return;
  for (const auto& [key, choice] : choices->kept()) {
    if (!before.contains(key)) runtime_.log().Debug("measured: {}: {}", key, choice);
  }
  runtime_.log().Info("{} kernels were chosen by measuring; checkpoints keep the choices",
                      choices->kept().size() - before.size());
}

void Trainer::BindExecutors() {
  const Symbol net = OnBatchesOf(train_, runtime_.operators(), options_.symbol);
  Executor::BindRequest request = TrainingRequest(options_, net, ArraysOf(train_));
  std::vector<std::string> parameters;
  for (const std::string& name : options_.symbol.ListArguments()) {
    if (!request.inputs.contains(name)) parameters.push_back(name);
  }
  for (const auto& [pattern, factor] : options_.lr_mult)
    RequireMatch(pattern, parameters, "parameter");
  for (const auto& [pattern, spec] : options_.initializers)
    RequireMatch(pattern, parameters, "parameter");
  if (request.grad_req.empty())
    Throw(ErrorKind::kConfig, "every parameter is frozen: nothing would be trained");
  for (const Context device : options_.workers) {
    request.ctx = device;
    request.memory_budget = BudgetOn(device, options_);
    executors_.push_back(Executor::SimpleBind(runtime_, net, request));
    ++request.replica;
  }
  if (!val_) return;
  evaluation_ = std::make_unique<Evaluation>(runtime_, options_.symbol, *val_, options_.metrics,
                                             executors_[0].get(), first_device(), options_.modes);
}

// Completed steps of the current segment, in batches of the current size, as counted by the
// schedule. If the batch size changed, the actual number differs.
int64_t Trainer::Position() const {
  return (state_.epoch - state_.first_epoch) * steps_per_epoch_ + state_.step_in_epoch;
}

// The step at which the run ends, from the current state.
void Trainer::PlanSteps() {
  const int64_t position = Position();
  total_steps_ = state_.step + std::max<int64_t>(options_.epochs * steps_per_epoch_ - position, 0);
  if (options_.max_steps > 0)
    total_steps_ = std::min(total_steps_, state_.first_step + options_.max_steps);
  const int64_t whole = std::max<int64_t>(position + total_steps_ - state_.step, 1);
  schedule_ = LrSchedule::Create(options_.lr_schedule.name, options_.lr_schedule.params,
                                 steps_per_epoch_, whole);
}

// Attributes in the net take precedence over patterns, and patterns over the rules for names.
void Trainer::InitializeParameters() {
  const auto weights = Initializer::Create(options_.initializer.name, options_.initializer.params);
  const uint64_t seed = runtime_.options().seed;
  for (const auto* arrays : {&executors_[0]->args(), &executors_[0]->auxs()}) {
    for (const auto& [name, array] : *arrays) {
      NDArray target = array;
      const Attrs& attrs = AttrsOf(options_.symbol, name);
      const auto init = attrs.find("__init__");
      const NamedSpec* by_pattern = nullptr;
      for (const auto& [pattern, spec] : options_.initializers) {
        if (GlobMatches(pattern, name)) by_pattern = &spec;
      }
      if (by_pattern && init == attrs.end()) {
        Initializer::Create(by_pattern->name, by_pattern->params)->Initialize(name, seed, &target);
      } else {
        InitializeByName(name, init == attrs.end() ? "" : init->second, *weights, seed, &target);
      }
    }
  }
}

void Trainer::MakeUpdater() {
  kvstore_ =
      KVStore::Create(runtime_, options_.kvstore, options_.workers, options_.new_communicator);
  for (size_t w = 1; w < executors_.size(); ++w) {
    for (const auto& [name, array] : executors_[w]->args())
      NDArray(array).CopyFrom(executors_[0]->arg(name));
    for (const auto& [name, array] : executors_[w]->auxs())
      NDArray(array).CopyFrom(executors_[0]->aux(name));
  }
  std::vector<OptimizerUpdater::Key> keys;
  // Keys in the order of the net: the first layers' weights are needed first.
  for (const std::string& name : options_.symbol.ListArguments()) {
    if (!executors_[0]->grads().contains(name)) continue;
    Learned& learned = learned_.emplace_back();
    learned.name = name;
    for (const auto& executor : executors_) {
      learned.grads.push_back(executor->grad(name));
      learned.weights.push_back(executor->arg(name));
    }
    const int key = static_cast<int>(keys.size());
    kvstore_->Init(key, learned.weights, /*share=*/true);
    const std::span<const NDArray> kept = kvstore_->Values(key);
    keys.push_back({name,
                    {kept.begin(), kept.end()},
                    FindMultipliers(name, AttrsOf(options_.symbol, name), options_.lr_mult)});
  }
  sums_of_.resize(learned_.size());
  auto optimizer = Optimizer::Create(options_.optimizer.name, options_.optimizer.params);
  if (!optimizer->takes_schedule() &&
      (options_.lr_schedule.name != "constant" || !options_.lr_schedule.params.empty())) {
    Throw(ErrorKind::kConfig,
          "optimizer {} needs a constant learning rate: remove train.lr_schedule",
          options_.optimizer.name);
  }
  updater_ = std::make_unique<OptimizerUpdater>(runtime_, std::move(optimizer), std::move(keys),
                                                rescale_grad_);
  kvstore_->SetUpdater(
      [this](std::span<const KVStore::KeyUpdate> updates) { updater_->Update(updates); });
  if (options_.average_decay) {
    std::map<std::string, NDArray> values = executors_[0]->auxs();
    for (const Learned& learned : learned_) values[learned.name] = learned.weights[0];
    average_ = std::make_unique<WeightAverage>(runtime_, *options_.average_decay, values);
  }
}

void Trainer::MakeLossScale() {
  if (executors_[0]->loss_scale().empty()) return;
  std::vector<NDArray> of_workers;
  for (const auto& executor : executors_) of_workers.push_back(executor->loss_scale());
  seen_loss_scale_.scale =
      LossScale::First(rescale_grad_ * static_cast<double>(options_.grad_accum));  // of one batch
  loss_scale_.emplace(runtime_, updater_->devices(), of_workers, seen_loss_scale_);
}

void Trainer::TellOfOtherData(const char* what, const std::string& then, const std::string& now,
                              bool extend) const {
  if (then.empty() || now.empty() || then == now) return;
  const std::string text =
      format("the {} data differ from those of the checkpoint: {} then, {} now", what, then, now);
  extend ? runtime_.log().Info("{}", text) : runtime_.log().Warning("{}", text);
}

void Trainer::Resume(const Checkpoint& checkpoint, bool extend) {
  if (checkpoint.state.seed != runtime_.options().seed) {
    Throw(ErrorKind::kConfig,
          "the checkpoint was made with seed {}, the run has seed {}; resume with --seed {}",
          checkpoint.state.seed, runtime_.options().seed, checkpoint.state.seed);
  }
  CheckClasses(checkpoint.model.class_names, options_.model.class_names);
  Restore(checkpoint.args, "parameter", executors_[0]->args());
  Restore(checkpoint.auxs, "auxiliary state", executors_[0]->auxs());
  for (int d = 0; d < updater_->num_devices(); ++d)
    Restore(checkpoint.optimizer, "optimizer state", updater_->StatesOn(d));
  for (size_t w = 1; w < executors_.size(); ++w) {
    Restore(checkpoint.args, "parameter", executors_[w]->args());
    Restore(checkpoint.auxs, "auxiliary state", executors_[w]->auxs());
  }
  TellOfOtherData("training", checkpoint.model.train_data, options_.model.train_data, extend);
  TellOfOtherData("validation", checkpoint.model.val_data, options_.model.val_data, extend);
  const int threads = state_.threads;
  state_ = checkpoint.state;
  if (state_.threads != threads) {
    runtime_.log().Warning(
        "the checkpoint was made with {} threads, this run has {}: results may differ in the last "
        "bits",
        state_.threads, threads);
    state_.threads = threads;
  }
  best_.Restore(state_.best);
  scores_.metrics().RestoreState(state_.metric_states);
  scores_.loss().RestoreState(state_.loss_state);
  RestoreAverages(checkpoint);
  if (loss_scale_ && state_.loss_scale) {
    seen_loss_scale_ = *state_.loss_scale;
    loss_scale_->Write(seen_loss_scale_);
  }
  for (auto& executor : executors_) executor->set_random_step(state_.random_step);
  FindPlace(checkpoint.model.batch_size);
  PlanSteps();
  schedule_->RestoreState(state_.schedule_state);
  if (early_stop_ && !state_.early_stop_state.empty())
    early_stop_->RestoreState(state_.early_stop_state);
  if (extend) Extend(checkpoint.state.total_steps);
}

// A run with averages, resumed from one without, starts them with its next update.
void Trainer::RestoreAverages(const Checkpoint& checkpoint) {
  if (average_ && state_.average_updates > 0)
    average_->Restore(checkpoint.averages, state_.average_updates);
  if (average_ && state_.average_updates == 0 && state_.step > 0) {
    runtime_.log().Warning(
        "the checkpoint holds no averages of weights: they start with the next step");
  }
  if (!average_ && state_.average_updates > 0)
    runtime_.log().Warning("the checkpoint's averages of weights are ignored: this run keeps none");
}

void Trainer::Extend(int64_t planned_steps) {
  if (state_.step < planned_steps && !state_.ended_early) {
    Throw(ErrorKind::kUsage,
          "the run is not finished: it has made {} of {} steps; resume it without extending",
          state_.step, planned_steps);
  }
  const bool epoch_to_end =
      state_.step_in_epoch >=
      steps_per_epoch_;  // stopped between the last step and the end of the epoch
  state_.first_epoch = state_.epoch + (epoch_to_end ? 1 : 0);
  state_.first_step = state_.step;
  state_.ended_early = false;
  if (early_stop_) early_stop_->Restart();
  PlanSteps();
  runtime_.log().Info(
      "extended by {} steps; the schedule '{}' restarts at a learning rate of {:.3g} and ends at "
      "{:.3g}",
      total_steps_ - state_.step, options_.lr_schedule.name, LearningRate(0),
      LearningRate(std::max<int64_t>(total_steps_ - state_.step - 1, 0)));
}

// Restores the position in the epoch, which may have been counted in batches of another size, or in
// steps of another number of batches.
void Trainer::FindPlace(int64_t batch_size) {
  const int64_t batches = state_.batches_per_step,
                examples = state_.step_in_epoch * batch_size * batches;
  state_.batches_per_step = options_.grad_accum;
  if (batch_size * batches == ExamplesPerStep()) return;
  if (examples % ExamplesPerStep() != 0) {
    Throw(ErrorKind::kConfig,
          "the checkpoint is inside epoch {}, {} examples after its start, where no {} of {} "
          "starts; resume with "
          "data.batch_size={}{}, or from a checkpoint between two epochs (epoch-{:04})",
          state_.epoch + 1, examples, options_.grad_accum == 1 ? "batch" : "step",
          ExamplesPerStep(), batch_size,
          batches == options_.grad_accum ? "" : format(" train.grad_accum={}", batches),
          std::max<int64_t>(state_.epoch, 1));
  }
  state_.step_in_epoch = std::min(examples / ExamplesPerStep(), steps_per_epoch_);
  runtime_.log().Warning(
      "the checkpoint was made with batches of {}, this run has {}: it continues at the same "
      "example, with different steps",
      batch_size * batches, ExamplesPerStep());
}

WeightsAccount Trainer::Begin(const std::map<std::string, NDArray>& weights) {
  WeightsAccount account;
  for (const auto& executor : executors_) {
    std::map<std::string, NDArray> arrays = executor->auxs();
    arrays.insert(executor->args().begin(), executor->args().end());
    account = TakeWeights(weights, arrays);  // the same for every worker
  }
  return account;
}

void Trainer::ThrowDiverged(int64_t step, const std::vector<int64_t>& index) {
  constexpr size_t kShown = 4;
  std::vector<std::string> heads, examples;
  const LossReport& loss = scores_.loss();
  for (size_t h = 0; h < loss.heads().size(); ++h) {
    if (!std::isfinite(loss.Mean(static_cast<int>(h))))
      heads.push_back(format("'{}'", loss.heads()[h].name));
  }
  for (int64_t i : index) examples.push_back(train_.ExampleName(i));
  const std::vector<std::string> shown(
      examples.begin(),
      examples.begin() + static_cast<ptrdiff_t>(std::min(examples.size(), kShown)));
  diverged_.emplace(format("the loss of {} is not finite at step {} (batch of {} examples: {}{}); "
                           "lower the learning rate, or clip gradients",
                           join(heads, ", "), step + 1, examples.size(), join(shown, ", "),
                           examples.size() > kShown ? ", ..." : ""),
                    step + 1, std::move(examples));
  throw *diverged_;
}

// Forward and backward; gradients are added to those of the step's previous batches.
void Trainer::SumGradients(const DataBatch& batch) {
  if (options_.grad_accum > 1 && summed_batches_ == 0) {
    for (Learned& learned : learned_) {
      for (NDArray& grad : learned.grads) grad.Fill(0);
    }
  }
  const int parts = static_cast<int>(executors_.size());
  input_order_->Arrange(batch, &inputs_);
  for (int w = 0; w < parts; ++w) {
    if (parts == 1) {
      executors_[0]->Step(inputs_);
      break;
    }
    part_.clear();
    for (const NDArray& input : inputs_) {
      const int64_t rows = input.shape()[0] / parts;
      part_.push_back(input.Slice(w * rows, (w + 1) * rows));
    }
    executors_[w]->Step(part_);
  }
  inputs_.clear();
  part_.clear();
}

// On one device the first layers' weights, which are needed first, are updated first, between the
// operations of the step. Across devices the stream that updates a weight waits for the other
// devices' gradients, so updates are issued after the step's operations, in the order in which
// gradients become ready.
int Trainer::PriorityOf(int key) const {
  return OnOneDevice(options_.workers) ? -key : executor::kStepPriority - 1;
}

// The last layers' gradients are ready first.
void Trainer::UpdateParameters() {
  updater_->BeginStep(state_.step, LearningRate(Position()));
  const int keys = static_cast<int>(learned_.size());
  for (int k = keys; k-- > 0;)
    sums_of_[k] = {k, kvstore_->Sum(k, learned_[k].grads, PriorityOf(k)), PriorityOf(k)};
  if (loss_scale_) updater_->TakeOutScale(sums_of_, &*loss_scale_);
  if (options_.clip_norm) updater_->ClipGlobalNorm(sums_of_, *options_.clip_norm);
  kvstore_->Update(sums_of_);
  for (int k = keys; k-- > 0;) kvstore_->Pull(k, learned_[k].weights, PriorityOf(k));
  if (average_) average_->Update();
}

// Pushes a function ordered after everything the batch computes; its outputs are ready long before.
// On a GPU it is preceded by an empty function, so the next step's updates need not wait for the
// host.
void Trainer::MarkEnd(bool updated) {
  reads_.clear();
  for (size_t w = 0; w < ends_.size(); ++w) {
    std::vector<engine::VarHandle>& last =
        options_.workers[w].type == DeviceType::kGPU ? computed_last_ : reads_;
    for (const Learned& learned : learned_)
      last.push_back((updated ? learned.weights : learned.grads)[w].var());
    if (computed_last_.empty()) continue;
    writes_.assign({ends_[w]});
    engine::DeduplicateVars(&computed_last_, &writes_);
    runtime_.engine().PushSync([](RunContext) {}, computed_last_, writes_,
                               {.ctx = options_.workers[w], .priority = 1, .name = "batch_end"});
    computed_last_.clear();
    reads_.push_back(ends_[w]);
  }
  writes_.assign({ended_});
  engine::DeduplicateVars(&reads_, &writes_);
  runtime_.engine().PushSync([this](RunContext) { data_wait_.Done(); }, reads_, writes_,
                             {.ctx = Context::cpu(), .priority = 1, .name = "batch_done"});
}

// Pushes the function that adds a batch's losses and metrics. Besides the sums it mutates one of
// two marks: waiting for that mark waits for this batch and not for the next one.
void Trainer::CollectBatch(const DataBatch& batch) {
  reads_.clear();
  writes_.assign({sums_, batch_marks_[static_cast<size_t>(batches_ % 2)]});
  auto outcome = outcomes_.Take();
  for (const auto& executor : executors_) {
    for (const NDArray& output : executor->outputs())
      reads_.push_back(outcome->outputs.emplace_back(output.ToHost()).var());
  }
  for (const NDArray& label : batch.label) reads_.push_back(label.var());
  engine::DeduplicateVars(&reads_, &writes_);
  outcome->labels = batch.label;
  outcome->index = batch.index;
  outcome->count = batch.count;
  outcome->step = state_.step;
  runtime_.engine().PushSync([this, outcome = std::move(outcome)](RunContext) { TakeIn(*outcome); },
                             reads_, writes_,
                             {.ctx = Context::cpu(), .priority = 1, .name = "metrics"});
}

// Adds a batch to the sums of losses and metrics.
void Trainer::TakeIn(const Outcome& outcome) {
  const auto parts = static_cast<int64_t>(executors_.size());
  const size_t outputs = outcome.outputs.size() / executors_.size();
  for (int64_t w = 0; w < parts; ++w) {
    output_blobs_.clear();
    for (size_t i = 0; i < outputs; ++i)
      output_blobs_.push_back(outcome.outputs[static_cast<size_t>(w) * outputs + i].data());
    int64_t count = outcome.count;
    for (size_t i = 0; i < outcome.labels.size(); ++i) {
      const NDArray& label = outcome.labels[i];
      const int64_t rows = label.shape()[0] / parts;
      label_blobs_[label_names_[i]] =
          (parts == 1 ? label : label.Slice(w * rows, (w + 1) * rows)).data();
      count = std::clamp<int64_t>(outcome.count - w * rows, 0, rows);
    }
    scores_.Add(output_blobs_, label_blobs_, count);
  }
  if (!std::isfinite(scores_.loss().Total())) ThrowDiverged(outcome.step, outcome.index);
}

Checkpoint Trainer::Snapshot() const {
  Checkpoint c;
  c.model = options_.model;
  if (KernelChoices* choices = ChoicesOf(runtime_.backend(first_device())))
    c.model.kernel_choices = choices->kept();
  c.state = state_;
  c.state.total_steps = total_steps_;
  c.state.batches_per_step = options_.grad_accum;
  c.state.schedule_state = schedule_->SaveState();
  c.state.early_stop_state = early_stop_ ? early_stop_->SaveState() : "";
  c.state.best = best_.values();
  c.state.loss_scale = loss_scale_ ? std::optional(loss_scale_->Read()) : std::nullopt;
  c.state.average_updates = average_ ? average_->updates() : 0;
  c.state.random_step = executors_[0]->random_step();
  c.state.metric_states = scores_.metrics().SaveState();
  c.state.loss_state = scores_.loss().SaveState();
  c.args = executors_[0]->args();
  c.auxs = executors_[0]->auxs();
  c.optimizer = updater_->States();
  if (average_ && average_->updates() > 0) c.averages = average_->Arrays();
  return c;
}

}  // namespace mxtrain
