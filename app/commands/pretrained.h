// SPDX-License-Identifier: Apache-2.0
#pragma once
// train.weights: initial weights from a file or an address, with the name map of the configuration.
#include <string>

#include "app/console/console.h"
#include "app/session/session.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain::commands {

// The path of a file of weights: downloaded, if `file` is an address and not in the cache, and
// checked if it is pinned (app/config/address.h); the files that an index lists come with it,
// without a pin of their own. `offline`: only from the cache. Throws as fetch::FetchFile,
// fetch::CheckSha256 and ShardsOf.
std::string LocalWeights(const std::string& file, console::Console& console, bool offline = false);

// What is missing where weights fill only a part of a net, beyond what new last layers explain.
struct WeightsGap {
  std::string text;  // "64 of the 309 arrays before its last layers are not in ..."; "": nothing
  bool is_other = false;  // so much that they are of another net
};
// `names`: of the net's arrays in the order of its layers. The new layers are those behind the last
// array that was taken, and those in another shape if they only differ by having the `classes` of
// the data (0: none);
// what else is missing before them, or arrays that go by other names in the file than in the net,
// are a gap.
WeightsGap GapOf(const WeightsAccount& account, const std::vector<std::string>& names,
                 int64_t classes);

// Passes the arrays of the file to the trainer and reports which were used; warns if the net or its
// images are otherwise than the publisher of the weights had them (app/config/name_list.h), and of
// a gap, with the text that it returns. Does nothing if the configuration names no file. Throws as
// LocalWeights and LoadWeights, and kConfig for an invalid map, for a file without any matching
// array, for one that lacks arrays of a net that is not trained, and for one of another net unless
// train.weights.partial.
std::string TakePretrained(session::Session& session, Trainer* trainer, console::Console& console,
                           bool offline = false);

// Before Resume: what a run with train.lora does not keep in its checkpoints.
inline void TakeBase(session::Session& session, Trainer* trainer, console::Console& console,
                     bool offline = false) {
  if (!session.net().lora.empty()) TakePretrained(session, trainer, console, offline);
}

}  // namespace mxtrain::commands
