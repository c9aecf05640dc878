// SPDX-License-Identifier: Apache-2.0
#include "app/commands/forecast.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "app/commands/synthetic_iter.h"
#include "mxtrain/kvstore/shards.h"

namespace mxtrain::commands {

TimeForecast ForecastTime(session::Session& session) {
  constexpr int kWarmUp = 3;
  constexpr int64_t kMostSteps = 50;
  constexpr double kSeconds = 5;
  const config::Config& config = session.config();
  std::unique_ptr<DataIter> real;
  if (std::filesystem::exists(config.data.train.path())) real = session.TrainIter();
  SyntheticIter made(session.runtime(), session.ctx(), session.net(), config.data.batch_size);
  DataIter& iter = real ? *real : made;
  TrainOptions options = session.MakeTrainOptions();
  session.MeasureAllLayers(&options);
  Trainer trainer(session.runtime(), options, iter, nullptr);

  TimeForecast forecast;
  forecast.synthetic = !real;
  if (real)
    forecast.steps_per_epoch = real->batches_per_epoch(),
    forecast.total_steps = trainer.total_steps();
  DataBatch batch;
  int64_t epoch = 0;
  const auto step = [&] {
    if (!iter.Next(&batch)) {
      iter.Reset(++epoch);
      iter.Next(&batch);
    }
    trainer.Step(batch);
  };
  for (int i = 0; i < kWarmUp; ++i) step();
  session.runtime().engine().WaitForAll();
  const auto begin = std::chrono::steady_clock::now();
  double seconds = 0;
  while (forecast.timed_steps < kMostSteps && seconds < kSeconds) {
    step();
    ++forecast.timed_steps;
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  session.runtime().engine().WaitForAll();
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  forecast.step_seconds = seconds / static_cast<double>(forecast.timed_steps);
  return forecast;
}

DiskForecast ForecastDisk(const session::Session& session, const session::ExternalBytes& outer) {
  const bool all = session.net().lora.empty();
  return {(all ? outer.parameters : outer.gradients) + outer.auxiliaries + outer.optimizer +
              outer.averages,
          session.config().train.save.keep + 4};
}

RanksForecast ForecastRanks(const session::Session& session, const executor::ExecGraph& trained,
                            int ranks) {
  const config::KVStoreConfig& kvstore = session.config().train.kvstore;
  std::vector<int64_t> bytes;
  double gradients = 0;
  for (const NodeEntry& gradient : trained.gradients) {
    if (!gradient) continue;
    bytes.push_back(trained.spec(gradient).Bytes());
    gradients += static_cast<double>(bytes.back());
  }
  // A ring passes on all parts but one, in a gather once and in an all-reduce twice.
  const double others = ranks - 1, of_parts = others / ranks;
  const double width = kvstore.wire == "bfloat16" ? 0.5 : 1;
  double sent = kvstore.compression.type == "2bit" ? others * gradients / 16
                                                   : 2 * of_parts * width * gradients;
  if (kvstore.shard_states) sent += of_parts * gradients;  // the weights
  const std::vector<int> owners = AssignOwners(bytes, ranks);
  std::vector<int64_t> of_ranks(static_cast<size_t>(ranks));
  for (size_t k = 0; k < bytes.size(); ++k) of_ranks[static_cast<size_t>(owners[k])] += bytes[k];
  return {static_cast<int64_t>(sent), session.StatesOfTraining().of_optimizer *
                                          *std::max_element(of_ranks.begin(), of_ranks.end())};
}

}  // namespace mxtrain::commands
