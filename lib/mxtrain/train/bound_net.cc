// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/bound_net.h"

#include "mxtrain/base/error.h"
#include "mxtrain/base/glob.h"
#include "mxtrain/initializer/initializer.h"
#include "mxtrain/train/example_weights.h"

namespace mxtrain {
namespace {

void CheckRequest(const TrainOptions& options, const Executor::BindRequest& request) {
  std::vector<std::string> parameters;
  for (const std::string& name : options.symbol.ListArguments()) {
    if (!request.inputs.contains(name)) parameters.push_back(name);
  }
  for (const auto& [pattern, factor] : options.lr_mult)
    RequireMatch(pattern, parameters, "parameter");
  for (const auto& [pattern, spec] : options.initializers)
    RequireMatch(pattern, parameters, "parameter");
  if (request.grad_req.empty())
    Throw(ErrorKind::kConfig, "every parameter is frozen: nothing would be trained");
}

// The last initializer whose pattern matches; null if none does.
const NamedSpec* InitializerOf(const std::string& name, const TrainOptions& options) {
  const NamedSpec* found = nullptr;
  for (const auto& [pattern, spec] : options.initializers) {
    if (GlobMatches(pattern, name)) found = &spec;
  }
  return found;
}

}  // namespace

const Attrs& AttrsOf(const Symbol& symbol, const std::string& variable) {
  static const Attrs kNone;
  for (const Node& node : symbol.graph().nodes) {
    if (node.is_variable() && node.name == variable) return node.attrs;
  }
  return kNone;
}

void RestoreArrays(const std::map<std::string, NDArray>& from, const std::string& what,
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

BoundNet::BoundNet(Runtime& runtime, const TrainOptions& options, Part part, const DataIter& train,
                   DataIter* val)
    : runtime_(runtime), options_(options), net_(std::move(part)) {
  KernelChoices* choices = ChoicesOf(runtime.backend(options.workers[0]));
  if (choices) choices->Keep(options.model.kernel_choices);
  const KernelChoices::Table before = choices ? choices->kept() : KernelChoices::Table();
  const double seconds_before = choices ? choices->measuring_seconds() : 0;
  {
    const KernelChoices::Measuring allowed(
        options.measure_kernels && !options.modes.deterministic ? choices : nullptr);
    Bind(train, val);
  }
  if (choices && choices->kept().size() > before.size()) {
    size_t measured = 0;
    for (const auto& [key, choice] : choices->kept()) {
      if (before.contains(key)) continue;
      runtime.log("train").Debug("measured: {}: {}", key, choice);
      measured += choice != KernelChoices::kNotMeasured;
    }
    runtime.log("train").Info(
        "{} kernels were chosen by measuring, in {:.1f} s; checkpoints keep the choices", measured,
        choices->measuring_seconds() - seconds_before);
    if (const size_t others = choices->kept().size() - before.size() - measured; others > 0) {
      runtime.log("train").Info(
          "{} could not be measured, for lack of memory as a rule: the library's default is used",
          others);
    }
  }
  input_order_ = std::make_unique<InputOrder>(first(), train, bound_.states);
  Initialize();
  CopyShared();
  CopyFirst();
}

void BoundNet::Bind(const DataIter& train, DataIter* val) {
  const OperatorRegistry& operators = runtime_.operators();
  bound_ = WithCarriedStates(
      operators, WithExampleWeights(operators, OnBatchesOf(train, operators, net_.symbol), train),
      options_.model.carry);
  const Symbol& net = bound_.net;
  const std::vector<DataDesc> arrays = WithStates(ArraysOf(train), bound_);
  rows_read_ = FindRowsRead(options_, net, arrays);
  const int workers = static_cast<int>(options_.workers.size());
  for (int w = 0; w < workers; ++w) {
    const Executor::BindRequest request = TrainingRequest(options_, net, arrays, w);
    if (w == 0) CheckRequest(options_, request);
    executors_.push_back(Executor::SimpleBind(runtime_, net, request));
    carried_.emplace_back(runtime_, *executors_.back(), bound_);
  }
  BindSmaller(train);
  PrepareSums();
  if (!val) return;
  evaluation_ = std::make_unique<Evaluation>(runtime_, net_.symbol, *val, options_.metrics,
                                             executors_[0].get(), options_.workers[0],
                                             options_.modes, options_.model.carry);
}

// The largest is bound first, so that the arena need not grow.
void BoundNet::BindSmaller(const DataIter& train) {
  sizes_.emplace(train);
  running_ = sizes_->largest();
  if (sizes_->count() == 1) return;
  const auto refuse = [](const char* what) {
    Throw(
        ErrorKind::kConfig,
        "batches of several sizes (data.bucket_lengths, train.multi_scale) cannot be used with {}",
        what);
  };
  if (!rows_read_.empty()) refuse("sparse_grad, whose rows are those of batches of one size");
  if (options_.sync_batch_norm) refuse("train.kvstore.sync_batch_norm");
  if (options_.watch.show) refuse("train.watch");
  if (!bound_.states.empty()) refuse("states that go on from batch to batch (net.carry)");
  for (size_t size = 0; size < sizes_->largest(); ++size) {
    std::vector<std::unique_ptr<Executor>>& executors = smaller_.emplace_back();
    for (const auto& executor : executors_)
      executors.push_back(executor->Reshape(sizes_->ShapesOf(size, *executor, num_workers())));
  }
}

// Kernels and the order of layers depend on a machine and its threads: the ranks compare theirs.
void BoundNet::PrepareSums() {
  if (!options_.sync_batch_norm) return;
  const size_t count = first().step_sums().size();
  std::string order;
  for (size_t i = 0; i < count; ++i) {
    std::vector<NDArray> of_workers;
    for (const auto& executor : executors_) of_workers.push_back(executor->step_sums().at(i));
    order += format("{} {}\n", of_workers[0].who(), of_workers[0].shape().ToString());
    sums_.push_back(std::move(of_workers));
  }
  if (!options_.group) return;
  const std::vector<std::string> orders = options_.group->GatherText(order);
  for (size_t r = 1; r < orders.size(); ++r) {
    if (orders[r] == orders[0]) continue;
    Throw(ErrorKind::kConfig,
          "rank {} computes the layers with batch norm in another order than rank 0, so their sums "
          "cannot meet; give all ranks equal machines and --threads, or set "
          "train.kvstore.sync_batch_norm to false",
          r);
  }
}

// Attributes in the net take precedence over patterns, and patterns over the rules for names.
void BoundNet::Initialize() {
  const auto weights = Initializer::Create(options_.initializer.name, options_.initializer.params);
  const uint64_t seed = runtime_.resources().seed();
  for (const Arrays& arrays : {args(), auxs()}) {
    for (const auto& [name, array] : arrays) {
      NDArray target = array;
      const Attrs& attrs = AttrsOf(options_.symbol, name);
      const auto init = attrs.find("__init__");
      const NamedSpec* by_pattern = InitializerOf(name, options_);
      if (by_pattern && init == attrs.end()) {
        Initializer::Create(by_pattern->name, by_pattern->params)->Initialize(name, seed, &target);
      } else {
        InitializeByName(name, init == attrs.end() ? "" : init->second, *weights, seed, &target);
      }
    }
  }
}

void BoundNet::CopyShared() {
  const auto copy = [](const Arrays& from, const Arrays& to) {
    for (const auto& [name, array] : to) {
      if (const auto own = from.find(name); own != from.end()) NDArray(array).CopyFrom(own->second);
    }
  };
  copy(first().args(), net_.args);
  copy(first().auxs(), net_.auxs);
}

void BoundNet::CopyFirst() {
  for (const auto& executor : executors().subspan(1)) {
    for (const auto& [name, array] : executor->args()) NDArray(array).CopyFrom(first().arg(name));
    for (const auto& [name, array] : executor->auxs()) NDArray(array).CopyFrom(first().aux(name));
  }
}

void BoundNet::Step(const DataBatch& batch) {
  const int parts = num_workers();
  input_order_->Arrange(batch, &inputs_);
  running_ = sizes_->Of(batch);
  if (running_ != sizes_->largest()) {
    // Executors of all sizes count the passes of random numbers together.
    for (size_t w = 0; w < executors_.size(); ++w)
      running()[w]->set_random_step(executors_[w]->random_step());
  }
  for (int w = 0; w < parts; ++w) {
    if (parts == 1) {
      carried_[0].PutInto(&inputs_);
      running()[0]->BeginStep(inputs_);
      break;
    }
    part_.clear();
    for (const NDArray& input : inputs_) {
      const int64_t rows = input.empty() ? 0 : input.shape()[0] / parts;
      part_.push_back(input.empty() ? input : input.Slice(w * rows, (w + 1) * rows));
    }
    carried_[static_cast<size_t>(w)].PutInto(&part_);
    running()[static_cast<size_t>(w)]->BeginStep(part_);
  }
  if (running_ != sizes_->largest()) {
    for (size_t w = 0; w < executors_.size(); ++w)
      executors_[w]->set_random_step(running()[w]->random_step());
  }
  for (size_t i = 0; i < first().step_sums().size(); ++i) {
    SumOverParts(options_.group, sums_[i]);
    for (const auto& executor : executors_) executor->ContinueStep();
  }
  for (CarriedStates& states : carried_) states.Update();
  inputs_.clear();
  part_.clear();
}

void BoundNet::ZeroStates() {
  for (CarriedStates& states : carried_) states.Zero();
}

std::map<std::string, NDArray> BoundNet::CarriedArrays() const {
  Arrays arrays;
  for (size_t w = 0; w < carried_.size(); ++w) {
    for (const auto& [name, array] : carried_[w].Arrays()) arrays[format("{}/{}", w, name)] = array;
  }
  return arrays;
}

WeightsAccount BoundNet::Take(const std::map<std::string, NDArray>& weights) {
  WeightsAccount account;
  for (const auto& executor : executors_) {
    Arrays arrays = WithTrunk(executor->auxs(), executor->args());
    arrays = WithTrunk(WithTrunk(std::move(arrays), net_.args), net_.auxs);
    account = TakeWeights(weights, arrays);  // the same for every worker
  }
  CopyShared();
  return account;
}

void BoundNet::Restore(const Checkpoint& checkpoint, const std::set<std::string>& but) {
  const auto restore_args = [&](Arrays args) {
    for (const std::string& name : but) args.erase(name);
    RestoreArrays(checkpoint.args, "parameter", args);
  };
  for (const auto& executor : executors_) {
    restore_args(executor->args());
    RestoreArrays(checkpoint.auxs, "auxiliary state", executor->auxs());
    executor->set_random_step(checkpoint.state.random_step);
  }
  restore_args(net_.args);
  RestoreArrays(checkpoint.auxs, "auxiliary state", net_.auxs);
  RestoreArrays(checkpoint.carried, "carried state", CarriedArrays());
}

}  // namespace mxtrain
