// SPDX-License-Identifier: Apache-2.0
#pragma once
// One case, four uses: an operator's parameters, shapes and reference in double are written once.
// Every kernel is compared with it, differentiated, run with every request kind, and timed.
//
//   RunCase({.name = "relu, odd sizes",
//            .op = "Activation",
//            .kwargs = {{"act_type", "relu"}},
//            .shapes = {{3, 5, 7}},
//            .inputs = {UniformAwayFrom(-2, 2, {0})},
//            .forward =
//                [](const Arrays& in, const Arrays&) {
//                  return Arrays{Apply(in[0], [](double x) { return x > 0 ? x : 0; })};
//                },
//            .tolerance = {0, "a comparison and a copy"}});
//
// Checks for every CPU kernel of the operator, every type of the case, and arrays offered free,
// plain and blocked:
//   - the plan itself (sizes, granted pairs are declared ones, no saved bytes without a backward
//     pass);
//   - forward against the reference; auxiliary states likewise;
//   - the gradient with random head gradients against `gradient`, or against central differences
//     of `forward`;
//   - kNullOp leaves bytes alone, kWriteTo, kAddTo, in place for each granted pair, each input's
//     gradient omitted in turn;
//   - guard bytes around every array, poisoned outputs, workspaces and saved bytes, inputs left
//     unchanged, padding zero;
//   - arrays that backward does not declare have data == nullptr;
//   - no heap allocation in Forward and Backward; a second run gives the same bits.
// The kernels run on the calling thread's OpenMP team, without engine or executor. In a program
// that has called TestOn(gpu) they are GPU kernels on their own stream; arrays are copied to the
// GPU and back.
#include <functional>
#include <string>
#include <vector>

#include "mxtrain/operator/registry.h"
#include "tests/support/generators.h"

namespace mxtrain::test {

using Arrays = std::vector<Values>;

struct Tolerance {
  // Allowed error in machine epsilons of the type in which the kernel computes (double, else
  // float), for values of order 1; relative above 1. A few epsilons of the storage type are always
  // added if that is coarser.
  double epsilons = 16;
  std::string reason;  // why this number
};

// Results of one forward (and backward) pass; empty arrays if not requested.
struct CaseResult {
  std::string kernel;  // "graph": of a composite
  DType type = DType::kUnknown;
  Arrays in, aux, head, out, in_grad;
};

struct OperatorCase {
  std::string name;
  std::string op;
  Kwargs kwargs;
  std::vector<TShape> shapes;     // of every argument
  std::vector<Generator> inputs;  // of every argument; the last one serves all further arguments
  std::vector<Generator> aux = {Uniform(-1, 1)};
  std::vector<DType> input_types;  // kUnknown or missing: follows from the first input's type
  std::function<Arrays(const Arrays& in, const Arrays& aux)> forward;            // every output
  std::function<Arrays(const Arrays& in, const Arrays& aux)> aux_after_forward;  // null: unchanged
  // Null: as after forward.
  std::function<Arrays(const Arrays& in, const Arrays& aux)> aux_after_backward;
  // For operators whose gradient is not the derivative of their output; null: central differences.
  // One entry per argument, empty for arguments without gradient.
  std::function<Arrays(const Arrays& in, const Arrays& aux, const Arrays& head)> gradient;
  // For random operators, instead of `forward` and `gradient`: returns the problems of a result
  // that writes every output and gradient. Other request kinds are compared with that result.
  std::function<std::vector<std::string>(const CaseResult&)> check;
  Math math = Math::kFast;
  bool is_train = true;
  bool backward = true;  // false: only forward
  std::vector<DType> types = {DType::kFloat32, DType::kFloat64};
  Tolerance tolerance;
  // Further error allowed to the graph of a composite operator, in epsilons of the element type, to
  // which each of its intermediate arrays is rounded.
  double lowered_epsilons = 0;
  // Kernels that must not refuse this case in float32 ("onednn": if the build has it); the last
  // kernel never may.
  std::vector<std::string> must_accept;
  bool any_gradients = true;                           // nor if single gradients are not requested
  std::vector<std::string> may_allocate = {"onednn"};  // kernels whose libraries allocate
  uint64_t seed = 1;
};

inline const std::vector<DType> kAllFloatingTypes = {DType::kFloat32, DType::kFloat64,
                                                     DType::kFloat16, DType::kBfloat16};

struct KernelOutcome {
  std::string kernel;
  DType type = DType::kUnknown;
  std::string refusal;  // "" when it ran
};

struct CaseReport {
  std::vector<std::string> problems;  // sentences with the case, kernel, type and trial
  std::vector<KernelOutcome> kernels;
  int trials = 0;  // passes executed
};

// On the CPU, or on the device `ctx` of `backend`.
CaseReport ExamineCase(const OperatorCase& c, const OperatorRegistry& registry, Backend& backend,
                       Context ctx = Context::cpu());
// Runs the case with the operators of this build and fails the running doctest case for every
// problem.
CaseReport RunCase(const OperatorCase& c);

struct CaseTiming {
  std::string kernel;
  // Best of the repetitions; backward 0 if the case has none.
  double forward_ns = 0, backward_ns = 0;
};
// Times every kernel that accepts the case.
std::vector<CaseTiming> TimeCase(const OperatorCase& c, DType type, int repetitions,
                                 const OperatorRegistry& registry, Backend& backend);

// The device where RunCase runs from now on; the default is the CPU. Call it first. `backend` is
// that of the device and must outlive the tests. Skips operators without a kernel there.
void TestOn(Context ctx, std::shared_ptr<const OperatorRegistry> registry, Backend* backend);

// The registry and CPU backend that all tests of a process share.
const OperatorRegistry& TestRegistry();
Backend& TestBackend();

// Whether a CPU kernel ran the case in any of its types. True if RunCase uses another device. Ask
// of cases of one type: of more, a build with sanitizers may take the first alone.
bool KernelRan(const CaseReport& report, const std::string& kernel);

// Helpers for references.
Values Apply(const Values& x, const std::function<double(double)>& f);
Values Apply(const Values& x, const Values& y, const std::function<double(double, double)>& f);
double Norm(const Values& x);  // Euclidean

}  // namespace mxtrain::test
