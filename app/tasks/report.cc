// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/report.h"

#include <algorithm>

namespace mxtrain::tasks {

std::optional<ComparedBatch> Compare(const Head& head, const Examples& examples,
                                     const std::vector<NDArray>& outputs) {
  const std::vector<DataDesc> labels = examples.iter().provide_label();
  const auto found = std::ranges::find(labels, head.label, &DataDesc::name);
  if (found == labels.end()) return std::nullopt;
  const NDArray& output = outputs[static_cast<size_t>(head.output)];
  const NDArray& label = examples.batch().label[static_cast<size_t>(found - labels.begin())];
  ComparedBatch compared{output.shape(), label.shape(), output.ToVector(), label.ToVector()};
  if (found->units) {
    found->units->Restore(&compared.outputs);
    found->units->Restore(&compared.label);
  }
  return compared;
}

}  // namespace mxtrain::tasks
