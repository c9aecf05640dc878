// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/internal/sequence_plan.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain::engine {
namespace {

void MakeDistinct(std::vector<int>* values) {
  std::sort(values->begin(), values->end());
  values->erase(std::unique(values->begin(), values->end()), values->end());
}

void CheckRange(const SequenceOp& op, const std::vector<int>& values, int end, const char* what) {
  for (int value : values) {
    if (value < 0 || value >= end)
      Throw(ErrorKind::kBug, "operation '{}' of a sequence names {} {}; expected 0 to {}", op.name,
            what, value, end - 1);
  }
}

}  // namespace

std::vector<PortUse> CheckSequence(std::span<SequenceOp> ops, int num_ports) {
  std::vector<PortUse> uses(num_ports);
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    SequenceOp& op = ops[i];
    if (!op.fn) Throw(ErrorKind::kBug, "operation '{}' of a sequence has no function", op.name);
    for (auto* list : {&op.after, &op.reads, &op.writes, &op.renews}) MakeDistinct(list);
    std::erase_if(op.reads, [&](int port) {
      return std::binary_search(op.writes.begin(), op.writes.end(), port);
    });
    CheckRange(op, op.after, i, "earlier operation");
    CheckRange(op, op.reads, num_ports, "port");
    CheckRange(op, op.writes, num_ports, "port");
    for (int port : op.reads) uses[port].ops.push_back(i);
    for (int port : op.writes) {
      uses[port].ops.push_back(i);
      uses[port].written = true;
    }
    for (int port : op.renews) {
      if (!std::binary_search(op.writes.begin(), op.writes.end(), port)) {
        Throw(ErrorKind::kBug,
              "operation '{}' of a sequence renews port {}, which it does not write", op.name,
              port);
      }
      uses[port].renewed = true;
    }
  }
  return uses;
}

void CheckPortCount(size_t expected, size_t bound) {
  if (expected != bound)
    Throw(ErrorKind::kBug,
          "a sequence with {} ports was pushed with {} variables; bind one to each port", expected,
          bound);
}

}  // namespace mxtrain::engine
