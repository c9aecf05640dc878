// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/rank_gpus.h"

#include <map>
#include <sstream>

#include "mxtrain/base/error.h"

namespace mxtrain {

RankGpus OrderGpus(ProcessGroup& group, std::span<const std::string> identities,
                   const std::string& failure) {
  std::string own = failure.empty() ? "" : "!" + failure;
  if (failure.empty()) {
    for (const std::string& identity : identities) own += identity + "\n";
  }
  const std::vector<std::string> texts = group.GatherText(own);
  for (size_t r = 0; r < texts.size(); ++r) {
    if (!texts[r].starts_with('!')) continue;
    Throw(ErrorKind::kDevice, "{}{}",
          static_cast<int>(r) == group.rank() ? "" : format("on rank {}: ", r), texts[r].substr(1));
  }
  RankGpus gpus;
  std::map<std::string, int> rank_of;
  for (int r = 0; r < group.size(); ++r) {
    if (r == group.rank()) gpus.first = gpus.all;
    std::istringstream lines(texts[static_cast<size_t>(r)]);
    for (std::string identity; std::getline(lines, identity); ++gpus.all) {
      const auto [other, fresh] = rank_of.emplace(identity.substr(0, identity.find(',')), r);
      if (fresh) continue;
      Throw(ErrorKind::kUsage,
            "ranks {} and {} have the same GPU, {}: each process needs its own; --device auto "
            "gives it the one with its number on its machine, --device gpu:N or "
            "CUDA_VISIBLE_DEVICES, set for each process, another",
            other->second, r, identity);
    }
  }
  return gpus;
}

}  // namespace mxtrain
