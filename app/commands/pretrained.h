// SPDX-License-Identifier: Apache-2.0
#pragma once
// train.weights: initial weights from a file or an address, with the name map of the configuration.
#include <string>

#include "app/commands/session.h"
#include "app/report/console.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain::commands {

// The path of a file of weights: downloaded, if `file` is an address and not in the cache, and
// checked if it is pinned (app/config/address.h); the files that an index lists come with it,
// without a pin of their own. `offline`: only from the cache. Throws as fetch::FetchFile,
// fetch::CheckSha256 and ShardsOf.
std::string LocalWeights(const std::string& file, report::Console& console, bool offline = false);

// Passes the arrays of the file to the trainer and reports which were used; warns if the net or its
// images are otherwise than the publisher of the weights had them (app/config/name_list.h). Does
// nothing if the configuration names no file. Throws as LocalWeights and LoadWeights, and kConfig
// for an invalid map, for a file without any matching array, and for one that lacks arrays of a net
// that is not trained.
void TakePretrained(Session& session, Trainer* trainer, report::Console& console,
                    bool offline = false);

}  // namespace mxtrain::commands
