// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a run that is to be continued is one of this configuration.
#include <cstdint>
#include <string>

#include "app/console/console.h"
#include "app/session/session.h"
#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain::commands {

// Refuses to continue a run of another net (arrays that differ), recipe (optimizer, frozen layers)
// or data (other files under another name; a folder may move, and its files change). Of recipe and
// data, what the command line names is meant. `run`: the folder or checkpoint, for the message.
// Throws kConfig.
void RequireSameRun(session::Session& session, Trainer& trainer, const Checkpoint& checkpoint,
                    const std::string& run);
// The part of it that concerns the net.
void RequireSameNet(Trainer& trainer, const Checkpoint& checkpoint, const std::string& run);

// Warns about the settings that differ: each, but of one that holds many, such as the net, the
// first few. `config_before`: of the checkpoint. `epochs_before`: as in RunStart.
void TellDifferences(const session::Session& session, const std::string& config_before,
                     int64_t epochs_before, console::Console& console);

}  // namespace mxtrain::commands
