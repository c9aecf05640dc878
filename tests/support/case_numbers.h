// SPDX-License-Identifier: Apache-2.0
#pragma once
// A case of operator_case.h on a device: its arrays in one type, and what its definitions in double
// expect of a pass over them. case_examiner.h runs the kernels.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/operator_case.h"
#include "tests/support/operator_pass.h"

namespace mxtrain::test {

// Expected values of an array: all, or at some elements only (`at` not empty).
struct Expectation {
  Values values;
  std::vector<int64_t> at;
  double slack = 0;  // error of the expected value itself
};

// A sentence about the array `what` if it is not as expected, else "". `old`: what its values were
// added to; null: nothing. `epsilons`: of Tolerance.
std::string Mismatch(const std::string& what, DType type, const Values& actual,
                     const Expectation& expected, const Values* old, double epsilons);

// Of the data and, if they need not be the same, of the outputs.
struct CaseTypes {
  DType data = DType::kUnknown, out = DType::kUnknown;
};

// Everything shared by all kernels of a case and type.
struct CaseNumbers {
  DType type = DType::kUnknown;
  PassSetup setup;  // without kernel
  bool differentiable = false;
  // Nothing in what follows if the case has a `check`.
  Arrays out, aux_after_forward, aux_after_backward;
  std::vector<Expectation> grad;
};

class CaseOnDevice {
 public:
  // All must outlive it.
  CaseOnDevice(const OperatorCase& c, const OperatorRegistry& registry, Backend& backend,
               Context ctx)
      : case_(c), backend_(backend), ctx_(ctx), property_(registry.Create(c.op, c.kwargs)) {}

  const OperatorCase& definition() const { return case_; }
  const OperatorProperty& property() const { return *property_; }
  Backend& backend() const { return backend_; }
  Context ctx() const { return ctx_; }

  // The operator's draws, or its new weights, belong to elements, whatever their place in memory
  // and the type they are stored in.
  bool IsRandomOrUpdate() const;
  bool IsComposite() const;

  // Throws kConfig if the operator does not take the types.
  PassSetup MakeSetup(const CaseTypes& types) const;
  CaseNumbers MakeNumbers(const CaseTypes& types) const;
  // Writes every output and, of a case that has a backward pass, every gradient.
  PassTrial WriteTrial(const CaseNumbers& n) const;

 private:
  const OperatorCase& case_;
  Backend& backend_;
  const Context ctx_;
  const std::shared_ptr<const OperatorProperty> property_;
};

}  // namespace mxtrain::test
