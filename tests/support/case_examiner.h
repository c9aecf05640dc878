// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs every kernel of a case (operator_case.h) in every type and trial, and the graph of a
// composite operator, and compares what they write with the case's numbers.
#include "mxtrain/operator/registry.h"
#include "tests/support/case_numbers.h"

namespace mxtrain::test {

CaseReport ExamineKernels(const CaseOnDevice& c, const OperatorRegistry& registry);

}  // namespace mxtrain::test
