// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `train` says of a run: its summary, the best epochs, what limited its speed, and the next
// commands.
#include <cstdint>
#include <string>

#include "app/config/config.h"
#include "app/console/console.h"
#include "app/report/run_folder.h"
#include "mxtrain/base/json.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain::commands {

enum class SpeedLimit { kComputation, kComputationAndData, kData, kOtherPrograms };
// What limited the speed of a run. `wait_share`: of its time, waiting for data (TrainResult);
// `given_share`: of the processor time that the training could have used (cpu_share.h).
SpeedLimit LimitOf(double wait_share, double given_share);

// Of the examples, or validation examples, that could not be read; "" if all were.
std::string UnreadText(const DataIter& data, bool validation);
// Warns of them.
void TellUnread(const DataIter& data, bool validation, console::Console& console);

// The command that continues the run.
std::string ContinueCommand(const report::RunFolder& folder);

// The text of result.json. `examples`: what rates count; `peak_memory`: bytes of the process.
Json SummaryOf(const report::RunFolder& folder, const std::string& examples, const TrainResult& r,
               int64_t peak_memory);

// Messages at the end of a run. `examples`: as for SummaryOf; `given_share`: as for LimitOf.
void ReportRun(const config::Config& config, const report::RunFolder& folder,
               const std::string& examples, const TrainResult& r, int64_t peak_memory,
               double given_share, console::Console& console);

}  // namespace mxtrain::commands
