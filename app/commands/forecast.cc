// SPDX-License-Identifier: Apache-2.0
#include "app/commands/forecast.h"

#include <chrono>
#include <filesystem>

#include "app/commands/synthetic_iter.h"

namespace mxtrain::commands {

TimeForecast ForecastTime(Session& session) {
  constexpr int kWarmUp = 3;
  constexpr int64_t kMostSteps = 50;
  constexpr double kSeconds = 5;
  const config::Config& config = session.config();
  std::unique_ptr<DataIter> real;
  if (std::filesystem::exists(config.data.train.path)) real = session.TrainIter();
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

DiskForecast ForecastDisk(const Session& session, const ExternalBytes& outer) {
  return {outer.parameters + outer.auxiliaries + outer.optimizer + outer.averages,
          session.config().train.save.keep + 4};
}

}  // namespace mxtrain::commands
