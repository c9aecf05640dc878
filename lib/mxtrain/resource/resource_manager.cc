// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/resource/resource_manager.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain {

ResourceManager::ResourceManager(Storage& storage, uint64_t seed)
    : storage_(storage), seeding_{seed, 0} {}

void ResourceManager::Seed(uint64_t seed) {
  const MutexLock lock(mutex_);
  seeding_ = {seed, seeding_.number + 1};
  calls_ = 0;
}

uint64_t ResourceManager::seed() const {
  return seeding().seed;
}

ResourceManager::Seeding ResourceManager::seeding() const {
  const MutexLock lock(mutex_);
  return seeding_;
}

RandomState ResourceManager::State() const {
  const MutexLock lock(mutex_);
  return {seeding_.seed, calls_};
}

void ResourceManager::Restore(const RandomState& state) {
  const MutexLock lock(mutex_);
  seeding_.seed = state.seed;
  calls_ = state.step;
}

RandomState ResourceManager::NextCall() {
  const MutexLock lock(mutex_);
  return {seeding_.seed, calls_++};
}

SpaceLease ResourceManager::TakeSpace(RunContext ctx) {
  const MutexLock lock(mutex_);
  std::vector<Pooled>& pool = devices_[ctx.ctx].pool;
  auto found = std::find_if(pool.begin(), pool.end(), [&](const Pooled& pooled) {
    return !pooled.taken && pooled.space->on_.stream == ctx.stream;
  });
  if (found == pool.end()) {
    pool.push_back({std::make_unique<TempSpace>(*this, ctx), false, {}});
    found = std::prev(pool.end());
  }
  found->taken = true;
  ++found->stats.taken;
  return SpaceLease(found->space.get());
}

void ResourceManager::ReleaseIdle(Context ctx) {
  std::vector<SpaceLease> idle;
  {
    const MutexLock lock(mutex_);
    const auto found = devices_.find(ctx);
    if (found == devices_.end()) return;
    for (Pooled& pooled : found->second.pool) {
      if (pooled.taken || pooled.stats.bytes == 0) continue;
      idle.emplace_back(pooled.space.get());
      pooled.taken = true;
    }
  }
  for (const SpaceLease& space : idle) {
    try {
      space->Release();
    } catch (const Error&) {  // of a failed stream, which may still use the block
    }
  }
}

ResourceManager::Pooled& ResourceManager::Find(const TempSpace& space) {
  std::vector<Pooled>& pool = devices_.at(space.on_.ctx).pool;
  const auto found = std::find_if(pool.begin(), pool.end(),
                                  [&](const Pooled& p) { return p.space.get() == &space; });
  MXTRAIN_ASSERT(found != pool.end());
  return *found;
}

void ResourceManager::Return(const TempSpace& space) {
  const MutexLock lock(mutex_);
  Find(space).taken = false;
}

void ResourceManager::CountSize(const TempSpace& space, int64_t bytes) {
  const MutexLock lock(mutex_);
  Device& device = devices_.at(space.on_.ctx);
  int64_t& own = Find(space).stats.bytes;
  device.bytes += bytes - own;
  device.peak = std::max(device.peak, device.bytes);
  device.growths += bytes > 0;
  own = bytes;
}

void ResourceManager::CountRandomRun(Context ctx) {
  const MutexLock lock(mutex_);
  ++devices_[ctx].random_runs;
}

ResourceStats ResourceManager::GetStats(Context ctx) const {
  const MutexLock lock(mutex_);
  ResourceStats stats;
  const auto found = devices_.find(ctx);
  if (found == devices_.end()) return stats;
  const Device& device = found->second;
  for (const Pooled& pooled : device.pool) {
    stats.spaces.push_back(pooled.stats);
    stats.taken += pooled.stats.taken;
  }
  stats.bytes = device.bytes;
  stats.peak = device.peak;
  stats.growths = device.growths;
  stats.random_runs = device.random_runs;
  return stats;
}

std::vector<Context> ResourceManager::devices() const {
  const MutexLock lock(mutex_);
  std::vector<Context> used;
  for (const auto& [ctx, device] : devices_) used.push_back(ctx);
  return used;
}

const RandomState& RandomSteps::Next(bool is_train) {
  const ResourceManager::Seeding now = manager_.seeding();
  if (now.number != seeding_) state_.step = 0;
  seeding_ = now.number;
  state_.seed = now.seed;
  state_.step += is_train;
  return state_;
}

uint64_t RandomSteps::step() const {
  return manager_.seeding().number == seeding_ ? state_.step : 0;
}

void RandomSteps::set_step(uint64_t step) {
  seeding_ = manager_.seeding().number;
  state_.step = step;
}

}  // namespace mxtrain
