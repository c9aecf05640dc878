// SPDX-License-Identifier: Apache-2.0
#pragma once
// In what a net that is trained differs from the one that is written, for `plan`: documents that
// are packed into rows (train/packed_tokens.h), losses in blocks (train/block_losses.h).
#include <cstdint>
#include <string>
#include <vector>

#include "mxtrain/base/json.h"
#include "mxtrain/symbol/graph.h"

namespace mxtrain::commands {

struct TrainedForm {
  std::vector<std::string> attention;  // layers that see each document of a row alone
  std::vector<std::string> placed;     // constants that are read at the tokens' places in documents
  std::vector<std::string> losses;     // that are computed in blocks
};

TrainedForm FormOf(const Graph& trained, const Graph& written);
// Sentences; none if nothing differs. `length`: of a row.
std::vector<std::string> LinesOf(const TrainedForm& form, int64_t length);
Json ToJson(const TrainedForm& form);

}  // namespace mxtrain::commands
