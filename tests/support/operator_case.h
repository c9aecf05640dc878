#pragma once
// One case, four uses: an operator's parameters, shapes and reference in double are written once, and every implementation in the table is
// compared, differentiated, put through every request kind, and timed from it.
//
//   RunCase({.name = "relu, odd sizes", .op = "Activation", .kwargs = {{"act_type", "relu"}}, .shapes = {{3, 5, 7}},
//            .inputs = {UniformAwayFrom(-2, 2, {0})},
//            .forward = [](const Arrays& in, const Arrays&) { return Arrays{Apply(in[0], [](double x) { return x > 0 ? x : 0; })}; },
//            .tolerance = {0, "a comparison and a copy"}});
//
// What is examined, for every kernel of the operator's CPU table, every type of the case, and arrays offered free, plain and blocked:
//   - the plan itself (sizes, granted pairs within the declared ones, no saved bytes without a backward pass);
//   - forward against the reference; auxiliaries likewise;
//   - the gradient with random head gradients against `gradient`, or against central differences of `forward`;
//   - kNullOp leaves bytes alone, kWriteTo, kAddTo, in place for each granted pair, each input's gradient left out in turn;
//   - guard bytes around every array, poisoned outputs, workspaces and saved bytes, inputs left unchanged, padding zero;
//   - arrays that backward does not declare come with data == nullptr;
//   - no heap allocation in Forward and Backward; a second run gives the same bits.
// The kernels run on the calling thread's OpenMP team, without engine or executor. In a program that has called TestOn(gpu) they are those of the
// GPU, on a stream of their own; what the host looks at is copied there and back.
#include <functional>
#include <string>
#include <vector>

#include "mxtrain/operator/registry.h"
#include "tests/support/generators.h"

namespace mxtrain::test {

using Arrays = std::vector<Values>;

struct Tolerance {
  // Allowed error in machine epsilons of the type in which the kernel computes (double, else float), for values of order 1; relative
  // above 1. A few epsilons of the storage type are always granted on top where that is the coarser one.
  double epsilons = 16;
  std::string reason;  // of this number
};

// What one forward (and backward) pass gave; empty arrays where nothing was asked for.
struct CaseResult {
  std::string kernel;
  DType type = DType::kUnknown;
  Arrays in, aux, head, out, in_grad;
};

struct OperatorCase {
  std::string name;
  std::string op;
  Kwargs kwargs;
  std::vector<TShape> shapes;     // of every argument
  std::vector<Generator> inputs;  // of every argument; the last one serves those that follow
  std::vector<Generator> aux = {Uniform(-1, 1)};
  std::vector<DType> input_types;                                                // kUnknown or missing: follows from the first input's type
  std::function<Arrays(const Arrays& in, const Arrays& aux)> forward;            // every output
  std::function<Arrays(const Arrays& in, const Arrays& aux)> aux_after_forward;  // null: unchanged
  std::function<Arrays(const Arrays& in, const Arrays& aux)> aux_after_backward;  // null: as after forward
  // For operators whose gradient is not the derivative of their output; null: central differences. An entry per argument, empty for
  // arguments without gradient.
  std::function<Arrays(const Arrays& in, const Arrays& aux, const Arrays& head)> gradient;
  // In place of `forward` and `gradient`, for random operators: problems found in a result of writing every output and gradient. Other
  // request kinds are compared with that result.
  std::function<std::vector<std::string>(const CaseResult&)> check;
  bool is_train = true;
  bool backward = true;  // false: forward alone
  std::vector<DType> types = {DType::kFloat32, DType::kFloat64};
  Tolerance tolerance;
  // Kernels that may not refuse this case in float32 ("onednn": where the build has it); the last kernel never may.
  std::vector<std::string> must_accept;
  bool any_gradients = true;                           // nor may they when single gradients are not wanted
  std::vector<std::string> may_allocate = {"onednn"};  // kernels whose libraries allocate by themselves
  uint64_t seed = 1;
};

inline const std::vector<DType> kAllFloatingTypes = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16};

struct KernelOutcome {
  std::string kernel;
  DType type = DType::kUnknown;
  std::string refusal;  // "" when it ran
};

struct CaseReport {
  std::vector<std::string> problems;  // sentences that name the case, kernel, type and trial
  std::vector<KernelOutcome> kernels;
  int trials = 0;  // passes run
};

// On the CPU, or on the device `ctx` of `backend`.
CaseReport ExamineCase(const OperatorCase& c, const OperatorRegistry& registry, Backend& backend, Context ctx = Context::cpu());
// Examines with the operators of this build and fails the running doctest case for every problem.
CaseReport RunCase(const OperatorCase& c);

struct CaseTiming {
  std::string kernel;
  double forward_ns = 0, backward_ns = 0;  // best of the repetitions; backward 0 where the case has none
};
// Times every kernel that accepts the case.
std::vector<CaseTiming> TimeCase(const OperatorCase& c, DType type, int repetitions, const OperatorRegistry& registry, Backend& backend);

// Where RunCase runs from now on: the CPU, unless this says otherwise. To be called first. `backend`: of that device, and must outlive the tests.
// Operators without a kernel there are passed over.
void TestOn(Context ctx, std::shared_ptr<const OperatorRegistry> registry, Backend* backend);

// The registry and CPU backend that all tests of a process share.
const OperatorRegistry& TestRegistry();
Backend& TestBackend();

// Whether a kernel of the CPU ran the case in any of its types. True where RunCase runs elsewhere: no kernel of the CPU was asked.
bool KernelRan(const CaseReport& report, const std::string& kernel);

// Helpers for references.
Values Apply(const Values& x, const std::function<double(double)>& f);
Values Apply(const Values& x, const Values& y, const std::function<double(double, double)>& f);

}  // namespace mxtrain::test
