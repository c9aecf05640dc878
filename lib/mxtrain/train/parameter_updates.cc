// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/parameter_updates.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/glob.h"
#include "mxtrain/executor/gradient_buckets.h"
#include "mxtrain/kvstore/collectives.h"
#include "mxtrain/operator/param_of.h"

namespace mxtrain {
namespace {

// Auxiliary states that training does not change.
std::vector<std::string> FixedStatistics(const Symbol& net) {
  std::vector<std::string> names;
  const Graph& graph = net.graph();
  for (const Node& node : graph.nodes) {
    if (!node.op || ParamOf(*node.op, "use_global_stats") != params::Print(true)) continue;
    for (size_t i = static_cast<size_t>(node.num_args); i < node.inputs.size(); ++i)
      names.push_back(graph.nodes[static_cast<size_t>(node.inputs[i].node)].name);
  }
  return names;
}

// Gradients that become ready together, by key.
std::vector<std::vector<int>> KeysByBucket(const executor::ExecGraph& graph, int64_t bytes,
                                           std::span<const OptimizerUpdater::Key> keys) {
  std::map<std::string_view, int> key_of;
  for (size_t k = 0; k < keys.size(); ++k) key_of[keys[k].name] = static_cast<int>(k);
  std::vector<std::vector<int>> buckets;
  for (const executor::GradientBucket& bucket : executor::GradientBuckets(graph, bytes)) {
    std::vector<int>& of_bucket = buckets.emplace_back();
    for (const std::string& argument : bucket.arguments) of_bucket.push_back(key_of.at(argument));
  }
  return buckets;
}

std::unique_ptr<Optimizer> NewOptimizer(const TrainOptions& options) {
  auto optimizer = Optimizer::Create(options.optimizer.name, options.optimizer.params);
  if (!optimizer->takes_schedule() &&
      (options.lr_schedule.name != "constant" || !options.lr_schedule.params.empty())) {
    Throw(ErrorKind::kConfig,
          "optimizer {} needs a constant learning rate: remove train.lr_schedule",
          options.optimizer.name);
  }
  return optimizer;
}

// Ranks that do not wait for each other update by one gradient at a time.
void CheckApart(const TrainOptions& options) {
  const char* what = options.clip_norm            ? "clipping by the global norm"
                     : options.average_decay      ? "an average of the weights"
                     : options.sync_batch_norm    ? "batch norm over all processes"
                     : options.freeze.Unfreezes() ? "layers that are frozen for some epochs"
                     : options.modes.amp == DType::kFloat16 ? "training in float16"
                                                            : nullptr;
  if (what)
    Throw(ErrorKind::kConfig, "{} is not supported with KVStore 'dist_async'; use dist_sync", what);
}

}  // namespace

ParameterUpdates::ParameterUpdates(Runtime& runtime, const TrainOptions& options,
                                   const BoundNet& net, double rescale_grad,
                                   std::optional<int64_t> unfrozen_step)
    : runtime_(runtime),
      options_(options),
      unfrozen_step_(unfrozen_step),
      kvstore_(KVStore::Create(runtime, options.kvstore, options.workers, options.new_communicator,
                               options.group, options.dist)) {
  if (rounds()) CheckApart(options);
  std::vector<OptimizerUpdater::Key> keys = AddKeys(net);
  updater_ = std::make_unique<OptimizerUpdater>(runtime, NewOptimizer(options), std::move(keys),
                                                rescale_grad);
  if (rounds()) {
    rounds()->SetUpdater(
        [this](std::span<const KVStore::KeyUpdate> of_keys, int64_t before, int rank) {
          updater_->BeginStep(before, rate_(before / kvstore_->num_workers()));
          updater_->Update(of_keys, /*slot=*/rank);
        });
  } else {
    kvstore_->SetUpdater(
        [this](std::span<const KVStore::KeyUpdate> updates) { updater_->Update(updates); });
  }
  if (options.average_decay) MakeAverage(net);
  if (!net.first().loss_scale().empty()) MakeLossScale(net, rescale_grad);
}

ParameterUpdates::~ParameterUpdates() {
  kvstore_.reset();  // before what its updater uses
}

void ParameterUpdates::BeginRound(int64_t step, std::function<double(int64_t step)> rate) {
  rate_ = std::move(rate);
  rounds()->Begin(step * kvstore_->num_workers());
}

bool ParameterUpdates::WasFrozen(const std::string& parameter) const {
  const std::vector<std::string>& patterns = options_.freeze.patterns;
  return unfrozen_step_ &&
         std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return GlobMatches(pattern, parameter); });
}

// Keys in the order of the net: the first layers' weights are needed first.
std::vector<OptimizerUpdater::Key> ParameterUpdates::AddKeys(const BoundNet& net) {
  std::vector<OptimizerUpdater::Key> keys;
  for (const std::string& name : options_.symbol.ListArguments()) {
    if (!net.first().grads().contains(name)) continue;
    Learned& learned = learned_.emplace_back();
    learned.name = name;
    for (const auto& executor : net.executors()) {
      learned.grads.push_back(executor->grad(name));
      learned.weights.push_back(executor->arg(name));
    }
    kvstore_->Init(static_cast<int>(keys.size()), learned.weights, /*share=*/true);
    keys.push_back({name,
                    {},
                    FindMultipliers(name, AttrsOf(options_.symbol, name), options_.lr_mult),
                    WasFrozen(name) ? *unfrozen_step_ : 0});
  }
  for (size_t k = 0; k < keys.size(); ++k) {
    const int key = static_cast<int>(k);
    const std::optional<int> owner = kvstore_->OwnerOf(key);
    keys[k].updated = !owner || *owner == kvstore_->rank();
    const std::span<const NDArray> kept = kvstore_->Values(key);
    keys[k].weights.assign(kept.begin(), kept.end());
  }
  AddRowsRead(net, &keys);
  sums_of_.resize(learned_.size());
  if (options_.SumsOverDevices())
    kvstore_->SetBuckets(KeysByBucket(net.first().graph(), options_.bucket_bytes, keys));
  return keys;
}

// From here on their gradients are zero between steps.
void ParameterUpdates::AddRowsRead(const BoundNet& net, std::vector<OptimizerUpdater::Key>* keys) {
  for (const RowsRead& rows : net.rows_read()) {
    const auto learned = std::ranges::find(learned_, rows.parameter, &Learned::name);
    if (learned == learned_.end()) continue;
    if (options_.group) {
      Throw(ErrorKind::kConfig,
            "'{}': sparse_grad = True: gradients are summed over processes, of all rows; leave the "
            "parameter out",
            rows.parameter);
    }
    const auto key = learned - learned_.begin();
    (*keys)[static_cast<size_t>(key)].by_rows = true;
    rows_read_.push_back({static_cast<int>(key), rows.input});
    learned->grads[0].Fill(0);
  }
}

void ParameterUpdates::MakeAverage(const BoundNet& net) {
  std::map<std::string, NDArray> values = net.first().auxs();
  for (const std::string& name : FixedStatistics(options_.symbol)) values.erase(name);
  for (const Learned& learned : learned_) values[learned.name] = learned.weights[0];
  average_ = std::make_unique<WeightAverage>(runtime_, *options_.average_decay, values);
}

void ParameterUpdates::MakeLossScale(const BoundNet& net, double rescale_grad) {
  std::vector<NDArray> of_workers;
  for (const auto& executor : net.executors()) of_workers.push_back(executor->loss_scale());
  reported_scale_.emplace();
  const double rescale_of_batch = rescale_grad * static_cast<double>(options_.grad_accum);
  reported_scale_->scale = LossScale::First(rescale_of_batch);
  loss_scale_.emplace(runtime_, updater_->devices(), of_workers, *reported_scale_);
}

void ParameterUpdates::ZeroGradients() {
  for (Learned& learned : learned_) {
    for (NDArray& grad : learned.grads) grad.Fill(0);
  }
}

// On one device the first layers' weights, which are needed first, are updated first, between the
// operations of the step. Across devices the stream that updates a weight waits for the other
// devices' gradients, so updates are issued after the step's operations, in the order in which
// gradients become ready.
int ParameterUpdates::PriorityOf(int key) const {
  return options_.SumsOverDevices() ? executor::kStepPriority - 1 : -key;
}

// The last layers' gradients are ready first.
void ParameterUpdates::Push(int64_t step, double lr, const DataBatch& batch) {
  if (!rounds()) updater_->BeginStep(step, lr);
  for (const auto& [key, input] : rows_read_) updater_->SetRows(key, batch.data[input]);
  const int keys = static_cast<int>(learned_.size());
  for (int k = keys; k-- > 0;)
    sums_of_[k] = {k, kvstore_->Sum(k, learned_[k].grads, PriorityOf(k)), PriorityOf(k)};
  if (loss_scale_) updater_->TakeOutScale(sums_of_, &*loss_scale_);
  if (options_.clip_norm) updater_->ClipGlobalNorm(sums_of_, *options_.clip_norm);
  kvstore_->Update(sums_of_);
  for (int k = keys; k-- > 0;) kvstore_->Pull(k, learned_[k].weights, PriorityOf(k));
  if (average_) average_->Update();
}

void ParameterUpdates::AppendLastWritten(size_t worker, bool updated,
                                         std::vector<engine::VarHandle>* vars) const {
  for (const Learned& learned : learned_)
    vars->push_back((updated ? learned.weights : learned.grads)[worker].var());
}

void ParameterUpdates::RestoreStates(const std::map<std::string, NDArray>& states) {
  for (int d = 0; d < updater_->num_devices(); ++d) {
    std::map<std::string, NDArray> own = updater_->StatesOn(d);
    std::erase_if(own, [&](const auto& state) {
      const std::string& name = state.first;
      return !states.contains(name) && WasFrozen(name.substr(0, name.rfind('/')));
    });
    RestoreArrays(states, "optimizer state", own);
  }
}

// `own`: what this rank has, if it is that one.
NDArray ParameterUpdates::FromRank(int rank, const NDArray& own, const NDArray& like,
                                   bool keep) const {
  NDArray array = own;
  if (array.empty())
    array = NDArray(runtime_, like.shape(), like.dtype(), like.ctx(), like.layout());
  Broadcast(options_.group, array, rank);
  if (!keep) array.WaitToRead();  // so that its memory serves the next
  return array;
}

ParameterUpdates::OfRanks ParameterUpdates::Gather(bool keep) const {
  const std::map<std::string, NDArray> own = updater_->States();
  const std::map<int, NDArray> residuals = kvstore_->Residuals();
  OfRanks all;
  if (keep) all.states = own;
  for (size_t k = 0; k < learned_.size(); ++k) {
    const std::optional<int> owner = kvstore_->OwnerOf(static_cast<int>(k));
    for (int s = 0; owner && s < updater_->optimizer().NumStates(); ++s) {
      const std::string name = format("{}/{}", learned_[k].name, s);
      const auto found = own.find(name);
      const NDArray state = FromRank(*owner, found == own.end() ? NDArray() : found->second,
                                     learned_[k].weights[0], keep);
      if (keep) all.states[name] = state;
    }
  }
  for (int r = 0; r < kvstore_->num_workers(); ++r) {
    const bool here = r == kvstore_->rank();
    for (const auto& [key, residual] : residuals) {
      // Rank 0 writes checkpoints.
      const NDArray array =
          r == 0 ? residual : FromRank(r, here ? residual : NDArray(), residual, keep);
      if (keep && (r > 0 || here))
        all.residuals[format("{}/{}", r, learned_[static_cast<size_t>(key)].name)] = array;
    }
  }
  return all;
}

void ParameterUpdates::RestoreResiduals(const Checkpoint& checkpoint) {
  const std::map<int, NDArray> own = kvstore_->Residuals();
  const Logger log = runtime_.log("train");
  const auto has_rank = [&](int rank) {
    const std::string prefix = format("{}/", rank);
    const auto found = checkpoint.residuals.lower_bound(prefix);
    return found != checkpoint.residuals.end() && found->first.starts_with(prefix);
  };
  if (own.empty()) {
    if (!checkpoint.residuals.empty())
      log.Warning(
          "the checkpoint's residuals of compressed gradients are ignored: this run does not "
          "compress gradients");
    return;
  }
  const int ranks = kvstore_->num_workers();
  if (!has_rank(ranks - 1) || has_rank(ranks)) {
    if (checkpoint.state.step > 0)
      log.Warning(
          "the checkpoint holds no residuals of compressed gradients of {}: they restart at zero",
          Counted(ranks, "rank"));
    return;
  }
  std::map<std::string, NDArray> mine;
  for (const auto& [key, residual] : own) {
    const std::string& parameter = learned_[static_cast<size_t>(key)].name;
    const std::string name = format("{}/{}", kvstore_->rank(), parameter);
    if (checkpoint.residuals.contains(name) || !WasFrozen(parameter)) mine[name] = residual;
  }
  RestoreArrays(checkpoint.residuals, "residual", mine);
}

void ParameterUpdates::RestoreAverages(const Checkpoint& checkpoint) {
  const int64_t updates = checkpoint.state.average_updates;
  if (average_ && updates > 0)
    average_->Restore(checkpoint.averages, updates, unfrozen_step_.has_value());
  if (average_ && updates == 0 && checkpoint.state.step > 0) {
    runtime_.log("train").Warning(
        "the checkpoint holds no averages of weights: they start with the next step");
  }
  if (!average_ && updates > 0) {
    runtime_.log("train").Warning(
        "the checkpoint's averages of weights are ignored: this run keeps none");
  }
}

void ParameterUpdates::ReportLossScale(int64_t step, TrainListener& listener) {
  if (!loss_scale_) return;
  const LossScaleState now = loss_scale_->Read();
  if (now.at_lowest > 0) {
    throw DivergedError(format("gradients overflow in float16 at step {} or shortly before, "
                               "although the loss scale is at its minimum; lower the "
                               "learning rate, clip gradients, or train with train.amp: bf16",
                               step),
                        step, {});
  }
  if (now.scale < reported_scale_->scale) {
    listener.OnWarning(format(
        "step {}: gradients overflowed float16; {} step{} skipped so far, the loss is scaled by "
        "{:g} from now on",
        step, now.steps_skipped, now.steps_skipped == 1 ? " was" : "s were", now.scale));
  }
  reported_scale_ = now;
}

std::optional<LossScaleState> ParameterUpdates::ReadLossScale() const {
  return loss_scale_ ? std::optional(loss_scale_->Read()) : std::nullopt;
}

void ParameterUpdates::RestoreLossScale(const std::optional<LossScaleState>& saved) {
  if (!loss_scale_ || !saved) return;
  reported_scale_ = saved;
  loss_scale_->Write(*saved);
}

}  // namespace mxtrain
