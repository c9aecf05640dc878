// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run will need: time, estimated from a few steps, and disk space.
#include <cstdint>

#include "app/session/batch_fit.h"
#include "app/session/session.h"

namespace mxtrain::commands {

struct TimeForecast {
  double step_seconds = 0;
  int64_t timed_steps = 0;
  bool synthetic = false;       // there was no training data to read
  int64_t steps_per_epoch = 0;  // 0: not known without data
  int64_t total_steps = 0;
  double epoch_seconds() const { return step_seconds * static_cast<double>(steps_per_epoch); }
  double run_seconds() const { return step_seconds * static_cast<double>(total_steps); }
};

// Trains for a few seconds, including reading and decoding, and discards the result.
TimeForecast ForecastTime(session::Session& session);

struct DiskForecast {
  int64_t checkpoint_bytes = 0;
  // The numbered checkpoints that are kept, `last`, `previous`, `best` and one being written. Less
  // if the file system has hard links: equal checkpoints then share their bytes.
  int64_t most_files = 0;
};
DiskForecast ForecastDisk(const session::Session& session, const session::ExternalBytes& outer);

struct RanksForecast {
  int64_t sent_bytes = 0;       // by each process in a step, if they are in a ring
  int64_t optimizer_bytes = 0;  // of the process that has most
};
// Of several processes (dist_sync). `trained`: the result of the passes of training.
RanksForecast ForecastRanks(const session::Session& session, const executor::ExecGraph& trained,
                            int ranks);

}  // namespace mxtrain::commands
