// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/kvstore/kvstore.h"

namespace mxtrain {
namespace {

// The same on every device and for any number of workers.
uint64_t DrawOf(uint64_t seed, const std::string& parameter, int64_t step) {
  const PhiloxBits bits = Philox(seed, StreamOf(parameter), static_cast<uint64_t>(step), 0);
  return (uint64_t{bits.v[0]} << 32) | bits.v[1];
}

}  // namespace

OptimizerUpdater::OptimizerUpdater(Runtime& runtime, std::unique_ptr<Optimizer> optimizer,
                                   std::vector<Key> keys, double rescale_grad)
    : runtime_(runtime),
      optimizer_(std::move(optimizer)),
      keys_(std::move(keys)),
      rescale_grad_(rescale_grad) {
  if (keys_.empty()) return;
  std::vector<Context> contexts;  // of all weights, those of the first key first
  for (const Key& key : keys_) {
    for (const NDArray& weight : key.weights) {
      if (std::find(contexts.begin(), contexts.end(), weight.ctx()) == contexts.end())
        contexts.push_back(weight.ctx());
    }
  }
  const int64_t width = optimizer_->NumScalars();
  all_scalars_ = StagedArray(runtime, TShape{static_cast<int64_t>(keys_.size()), width},
                             DType::kFloat32, contexts, "optimizer scalars");
  const auto scalars_on = [&](Context ctx) {
    const auto found = std::find(contexts.begin(), contexts.end(), ctx);
    return all_scalars_.array(static_cast<size_t>(found - contexts.begin()));
  };
  for (size_t d = 0; d < keys_[0].weights.size(); ++d) {
    Device& device = devices_.emplace_back();
    device.ctx = keys_[0].weights[d].ctx();
    device.scalars = scalars_on(device.ctx);
    device.updates.resize(keys_.size());
    for (size_t k = 0; k < keys_.size(); ++k) {
      const NDArray& weight = keys_[k].weights[d];
      std::vector<NDArray>& states = device.states.emplace_back();
      for (int s = 0; keys_[k].updated && s < optimizer_->NumStates(); ++s) {
        states.push_back(
            NDArray::Zeros(runtime, weight.shape(), weight.dtype(), weight.ctx(), weight.layout()));
      }
      const auto row = static_cast<int64_t>(k);
      device.rows.push_back(scalars_on(weight.ctx()).Slice(row, row + 1).Reshape(TShape{width}));
    }
  }
}

OptimizerUpdater::Device& OptimizerUpdater::DeviceOf(const NDArray& weight) {
  if (devices_.size() == 1) return devices_[0];  // its keys may be on several devices
  for (Device& device : devices_) {
    if (device.ctx == weight.ctx()) return device;
  }
  Throw(ErrorKind::kBug, "an update on {}, where the updater has no weights",
        weight.ctx().ToString());
}

std::vector<Context> OptimizerUpdater::devices() const {
  std::vector<Context> contexts;
  for (const Device& device : devices_) contexts.push_back(device.ctx);
  return contexts;
}

void OptimizerUpdater::BeginStep(int64_t step, double lr) {
  if (keys_.empty()) return;
  const auto width = static_cast<size_t>(optimizer_->NumScalars());
  auto scalars = step_scalars_.Take();
  scalars->values.resize(keys_.size() * width);
  for (size_t k = 0; k < keys_.size(); ++k) {
    UpdateValues v;
    v.lr = lr * keys_[k].multipliers.lr;
    v.weight_decay = optimizer_->weight_decay() * keys_[k].multipliers.weight_decay;
    v.rescale_grad = rescale_grad_;
    v.step = step + 1 - keys_[k].first_step;
    if (keys_[k].first_step > 0 && v.step < warmup_)
      v.lr *= static_cast<double>(v.step) / static_cast<double>(warmup_);
    v.draw = DrawOf(runtime_.resources().seed(), keys_[k].name, step + 1);
    optimizer_->FillScalars(v, scalars->values.data() + k * width);
  }
  const engine::VarHandle writes[] = {all_scalars_.host().var()};
  runtime_.engine().PushSync(
      [host = all_scalars_.host().data().dptr<float>(), scalars = std::move(scalars)](RunContext) {
        std::copy(scalars->values.begin(), scalars->values.end(), host);
      },
      {}, writes, {.name = "optimizer_scalars", .renews = writes});
  all_scalars_.Upload();
  for (Device& device : devices_) {
    if (device.squares) device.squares->known = false;
  }
}

// The sums of squares of the step's gradients, computed on first use.
const NDArray& OptimizerUpdater::SumSquares(size_t device, std::span<const KVStore::KeySums> keys) {
  std::optional<Device::Squares>& squares = devices_[device].squares;
  arrays_.clear();
  for (const KVStore::KeySums& key : keys) arrays_.push_back(key.sums[device]);
  if (!squares || !squares->call.Takes(arrays_)) {
    const NDArray result(runtime_, TShape{static_cast<int64_t>(arrays_.size())}, DType::kFloat64,
                         devices_[device].ctx, {}, "squares of gradients");
    squares = Device::Squares{
        result,
        PreparedCall("multi_sum_sq", arrays_, std::span(&result, 1), OpReqType::kWriteTo, {}, {}),
        false};
  }
  arrays_.clear();
  if (!squares->known) squares->call.Push(/*priority=*/0);
  squares->known = true;
  return squares->sums;
}

void OptimizerUpdater::TakeOutScale(std::span<const KVStore::KeySums> keys, LossScale* scale) {
  for (size_t d = 0; d < devices_.size(); ++d)
    scale->Update(d, SumSquares(d, keys), devices_[d].scalars);
}

void OptimizerUpdater::ClipGlobalNorm(std::span<const KVStore::KeySums> keys, double max_norm) {
  for (size_t d = 0; d < devices_.size(); ++d) {
    std::optional<Device::Clipping>& clipping = devices_[d].clipping;
    const NDArray& scalars = devices_[d].scalars;
    const NDArray in[] = {SumSquares(d, keys), scalars};
    if (!clipping || clipping->max_norm != max_norm || !clipping->call.Takes(in)) {
      clipping =
          Device::Clipping{max_norm, PreparedCall("clip_global_norm", in, std::span(&scalars, 1),
                                                  OpReqType::kWriteInplace,
                                                  {{"max_norm", params::Print(max_norm)}}, {})};
    }
    clipping->call.Push(/*priority=*/0);
  }
}

void OptimizerUpdater::Update(std::span<const KVStore::KeyUpdate> keys, int slot) {
  if (keys.empty()) return;
  Device& device = DeviceOf(keys[0].local);
  if (GoTogether(device, keys)) return UpdateTogether(device, keys);
  for (const KVStore::KeyUpdate& key : keys) {
    if (keys_[static_cast<size_t>(key.key)].by_rows) {
      UpdateRows(device, key);
    } else {
      UpdateOne(device, key, static_cast<size_t>(slot));
    }
  }
}

// All keys, since each has its row of scalars.
bool OptimizerUpdater::GoTogether(const Device& device,
                                  std::span<const KVStore::KeyUpdate> keys) const {
  if (device.ctx.type != DeviceType::kGPU || keys.size() != keys_.size() || keys.size() == 1)
    return false;
  return std::all_of(keys.begin(), keys.end(), [&](const KVStore::KeyUpdate& key) {
    return key.local.dtype() == keys[0].local.dtype() && key.local.ctx() == device.ctx;
  });
}

void OptimizerUpdater::UpdateTogether(Device& device, std::span<const KVStore::KeyUpdate> keys) {
  const size_t count = keys.size();
  int priority = keys[0].priority;
  arrays_.resize(2 * count + 1);
  for (const KVStore::KeyUpdate& key : keys) {
    arrays_[static_cast<size_t>(key.key)] = key.local;
    arrays_[count + static_cast<size_t>(key.key)] = key.received;
    priority = std::max(priority, key.priority);
  }
  arrays_.back() = device.scalars;
  if (!device.joint_update || !device.joint_update->Takes(arrays_)) {
    std::vector<NDArray> states;
    for (const std::vector<NDArray>& of_key : device.states)
      states.insert(states.end(), of_key.begin(), of_key.end());
    Kwargs params = optimizer_->UpdateParams();
    params.emplace_back("num_weights", std::to_string(count));
    device.joint_update.emplace(optimizer_->UpdateOperator(), arrays_,
                                std::span(arrays_).first(count), OpReqType::kWriteInplace, params,
                                states);
  }
  arrays_.clear();
  device.joint_update->Push(priority);
}

void OptimizerUpdater::UpdateOne(Device& device, const KVStore::KeyUpdate& key, size_t slot) {
  const auto k = static_cast<size_t>(key.key);
  const NDArray in[] = {key.local, key.received, device.rows[k]};
  std::vector<std::optional<PreparedCall>>& updates = device.updates[k];
  if (slot >= updates.size()) updates.resize(slot + 1);
  std::optional<PreparedCall>& update = updates[slot];
  if (!update || !update->Takes(in)) {
    update.emplace(optimizer_->UpdateOperator(), in, std::span(&key.local, 1),
                   OpReqType::kWriteInplace, optimizer_->UpdateParams(), device.states[k]);
  }
  update->Push(key.priority);
}

// The arrays of batches come again, a few of them in turn.
void OptimizerUpdater::UpdateRows(Device& device, const KVStore::KeyUpdate& key) {
  constexpr size_t kMostCalls = 64;
  const auto k = static_cast<size_t>(key.key);
  const NDArray in[] = {key.local, key.received, rows_read_.at(key.key), device.rows[k]};
  std::vector<PreparedCall>& calls = updates_of_rows_[key.key];
  auto call = std::ranges::find_if(calls, [&](const PreparedCall& own) { return own.Takes(in); });
  if (call == calls.end()) {
    if (calls.size() == kMostCalls) calls.clear();
    const NDArray out[] = {key.local, key.received};
    Kwargs params = optimizer_->UpdateParams();
    params.emplace_back("rows", "True");
    calls.emplace_back(optimizer_->UpdateOperator(), in, out, OpReqType::kWriteInplace, params,
                       device.states[k]);
    call = calls.end() - 1;
  }
  call->Push(key.priority);
}

std::map<std::string, NDArray> OptimizerUpdater::StatesOn(int device) const {
  std::map<std::string, NDArray> states;
  for (size_t k = 0; k < keys_.size(); ++k) {
    const std::vector<NDArray>& of_key = devices_[static_cast<size_t>(device)].states[k];
    for (size_t s = 0; s < of_key.size(); ++s)
      states[format("{}/{}", keys_[k].name, s)] = of_key[s];
  }
  return states;
}

}  // namespace mxtrain
