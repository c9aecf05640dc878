// SPDX-License-Identifier: Apache-2.0
#pragma once
// A pass of a composite operator through its graph (operator/composite.h): a net of this operator
// alone, lowered, on the CPU. For operator_case.h; the caller checks the numbers.
#include "mxtrain/executor/passes.h"
#include "tests/support/operator_pass.h"

namespace mxtrain::test {

struct LoweredOutcome {
  Arrays out;      // the visible outputs
  Arrays in_grad;  // per argument; empty for arguments without gradient
};
// `grad`: kNull runs no backward pass; kAdd adds to PassSetup::old_grad. `reference`: each part by
// its last kernel.
LoweredOutcome RunLowered(const OperatorCase& c, const PassSetup& setup, executor::GradReq grad,
                          bool reference);

}  // namespace mxtrain::test
