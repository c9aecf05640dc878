// SPDX-License-Identifier: Apache-2.0
#include "tests/support/case_examiner.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mxtrain/base/format.h"
#include "mxtrain/device/blocked_layout.h"
#include "tests/support/lowered_pass.h"
#include "tests/support/turns.h"

namespace mxtrain::test {
namespace {

class Examiner {
 public:
  Examiner(const CaseOnDevice& c, const OperatorRegistry& registry)
      : on_(c), case_(c.definition()), property_(c.property()), registry_(registry) {}

  CaseReport Examine() {
    for (const DType type : case_.types) {
      const bool first = type == case_.types.front();
      if (!IsLeftOut(type) && (first || TypeHasItsTurn())) ExamineNumbers(on_.MakeNumbers({type}));
    }
    more_types_ = true;
    for (const CaseTypes& types : MoreTypes()) {
      if (!TypeHasItsTurn()) continue;
      if (const auto numbers = NumbersIfTaken(types)) ExamineNumbers(*numbers);
    }
    more_types_ = false;
    for (const DType type : {DType::kUint8, DType::kInt32, DType::kInt64}) {
      const bool own = std::count(case_.types.begin(), case_.types.end(), type) > 0;
      if (!own && TypeHasItsTurn()) ExamineIntegers(type);
    }
    return std::move(report_);
  }

 private:
  // MXTRAIN_CASE_FLOAT64=0: for builds with sanitizers, which see nothing in float64 that they do
  // not see in float32, an instance of the same templates.
  bool IsLeftOut(DType type) const {
    static const char* const wanted = std::getenv("MXTRAIN_CASE_FLOAT64");
    const bool also = std::count(case_.types.begin(), case_.types.end(), DType::kFloat32) > 0;
    return type == DType::kFloat64 && also && wanted && std::string_view(wanted) == "0";
  }
  // Of the types and of the requests beside the first some have their turn; since the counts go on
  // from case to case, every kind does.
  static bool TypeHasItsTurn() {
    static Turns turns("MXTRAIN_CASE_TYPES");
    return turns.Next();
  }
  static bool TrialHasItsTurn() {
    static Turns turns("MXTRAIN_CASE_TRIALS");
    return turns.Next();
  }
  std::vector<CaseTypes> MoreTypes() const;
  std::optional<CaseNumbers> NumbersIfTaken(const CaseTypes& types) const;
  void ExamineNumbers(const CaseNumbers& n);
  std::vector<std::vector<std::optional<Layout>>> Offers() const;
  std::vector<PassTrial> Trials(const CaseNumbers& n, const Plan& plan,
                                const PassTrial& base) const;
  void ExamineKernel(const CaseNumbers& n, const KernelEntry& kernel);
  void ExamineIntegers(DType type);
  // The last kernel takes everything, unless a graph replaces what no kernel takes, or the case
  // does not ask for the type.
  bool MustTake(const KernelEntry& kernel) const {
    return kernel.rank == kRefRank && !on_.IsComposite() && !more_types_;
  }
  void ExamineLowered(const CaseNumbers& n);
  void ExamineOffer(const PassSetup& setup, const CaseNumbers& n, const KernelEntry& kernel,
                    const PassTrial& base, Plan* plan);
  void CompareOutcome(const CaseNumbers& n, const PassSetup& setup, const PassTrial& trial,
                      const KernelEntry& kernel, const PassOutcome& outcome);
  void Compare(const std::string& what, DType type, const Values& actual,
               const Expectation& expected, const Values* old) {
    const std::string problem =
        Mismatch(what, type, actual, expected, old, case_.tolerance.epsilons);
    if (!problem.empty()) Problem(problem);
  }
  void Problem(const std::string& text) { report_.problems.push_back(where_ + ": " + text); }
  bool Listed(const std::vector<std::string>& kernels, const std::string& kernel) const {
    return std::find(kernels.begin(), kernels.end(), kernel) != kernels.end();
  }

  const CaseOnDevice& on_;
  const OperatorCase& case_;
  const OperatorProperty& property_;
  const OperatorRegistry& registry_;
  bool more_types_ = false;  // than the case asks for
  CaseReport report_;
  std::string where_;
  // Of random operators: the first result of a kernel and type.
  std::optional<PassOutcome> baseline_;
};

DType Other(DType type) {
  switch (type) {
    case DType::kFloat32:
      return DType::kFloat64;
    case DType::kInt32:
      return DType::kInt64;
    case DType::kInt64:
      return DType::kInt32;
    default:
      return DType::kFloat32;
  }
}

// Random operators and updates run in a second type, whatever the case says, and with outputs of
// another type than the arguments.
std::vector<CaseTypes> Examiner::MoreTypes() const {
  if (!on_.IsRandomOrUpdate() || case_.types.empty()) return {};
  const DType first = case_.types[0], other = Other(first);
  std::vector<CaseTypes> types = {{first, other}};
  if (case_.types.size() == 1) types.push_back({other});
  std::erase_if(types,
                [this](const CaseTypes& t) { return IsLeftOut(t.data) || IsLeftOut(t.out); });
  return types;
}

// None if the operator does not take these types.
std::optional<CaseNumbers> Examiner::NumbersIfTaken(const CaseTypes& types) const {
  try {
    return on_.MakeNumbers(types);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    return std::nullopt;
  }
}

void Examiner::ExamineNumbers(const CaseNumbers& n) {
  for (const KernelEntry* kernel : registry_.Kernels(case_.op, on_.ctx().type))
    ExamineKernel(n, *kernel);
  if (on_.IsComposite() && on_.ctx().type == DeviceType::kCPU) ExamineLowered(n);
}

// Every input free, every input plain, and images in blocks of eight channels and with channels
// last.
std::vector<std::vector<std::optional<Layout>>> Examiner::Offers() const {
  const size_t count = case_.shapes.size();
  std::vector<std::vector<std::optional<Layout>>> offers = {
      std::vector<std::optional<Layout>>(count)};
  offers.emplace_back(count, std::optional<Layout>(Layout()));
  const auto is_image = [](const TShape& shape) { return shape.ndim() == 4; };
  if (std::none_of(case_.shapes.begin(), case_.shapes.end(), is_image)) return offers;
  for (const char* name : {"aBcd8b", "acdb"}) {
    offers.emplace_back(count, std::optional<Layout>(Layout()));
    for (size_t i = 0; i < count; ++i) {
      if (is_image(case_.shapes[i]))
        offers.back()[i] = on_.backend().Intern(BlockedLayout::FromName(name));
    }
  }
  return offers;
}

std::vector<PassTrial> Examiner::Trials(const CaseNumbers& n, const Plan& plan,
                                        const PassTrial& base) const {
  std::vector<PassTrial> trials;
  const auto add = [&](std::string what, auto change) {
    trials.push_back(base);
    trials.back().what = std::move(what);
    change(trials.back());
  };
  const auto forward_only = [](PassTrial& t) {
    t.backward = false;
    t.grad_req.clear();
  };
  if (base.backward) add("write, no backward pass", forward_only);
  add("accumulate outputs", [&](PassTrial& t) {
    forward_only(t);
    std::fill(t.out_req.begin(), t.out_req.end(), OpReqType::kAddTo);
  });
  for (size_t o = 0; o < n.setup.out.size(); ++o) {
    add(format("output {} not requested", o), [&](PassTrial& t) {
      forward_only(t);
      t.out_req[o] = OpReqType::kNullOp;
    });
  }
  const int visible = property_.NumVisibleOutputs();
  if (base.backward && visible < property_.NumOutputs()) {
    add("hidden outputs not requested", [&](PassTrial& t) {
      std::fill(t.out_req.begin() + visible, t.out_req.end(), OpReqType::kNullOp);
    });
  }
  for (const InplacePair& pair : plan.forward_inplace) {
    add(format("output {} in place of input {}", pair.to, pair.from),
        [&](PassTrial& t) { t.forward_pair = pair; });
  }
  if (!base.backward) return trials;
  if (plan.accumulates) {
    add("accumulate gradients", [](PassTrial& t) {
      std::replace(t.grad_req.begin(), t.grad_req.end(), OpReqType::kWriteTo, OpReqType::kAddTo);
    });
  }
  for (const InplacePair& pair : plan.backward_inplace) {
    if (!property_.HasGradient(pair.to)) continue;
    add(format("gradient {} in place of array {} that backward reads", pair.to, pair.from),
        [&](PassTrial& t) { t.backward_pair = pair; });
  }
  for (size_t i = 0; i < n.setup.in.size(); ++i) {
    if (!property_.HasGradient(static_cast<int>(i))) continue;
    add(format("gradient {} not requested", i), [&](PassTrial& t) {
      t.grad_req[i] = OpReqType::kNullOp;
      t.required = case_.any_gradients;
    });
  }
  return trials;
}

void Examiner::CompareOutcome(const CaseNumbers& n, const PassSetup& setup, const PassTrial& trial,
                              const KernelEntry& kernel, const PassOutcome& outcome) {
  ++report_.trials;
  for (const std::string& problem : outcome.problems) Problem(problem);
  if (outcome.allocations > 0 && on_.ctx().type == DeviceType::kCPU &&
      !Listed(case_.may_allocate, kernel.name)) {
    Problem(format("Forward and Backward made {} heap allocations", outcome.allocations));
  }
  if (case_.check && !baseline_) {
    baseline_ = outcome;
    for (const std::string& problem :
         case_.check({kernel.name, n.type, setup.in_values, setup.aux_values, setup.head_values,
                      outcome.out, outcome.in_grad})) {
      Problem(problem);
    }
    return;
  }
  const auto want = [](const Values& values) { return Expectation{values, {}, 0}; };
  for (size_t o = 0; o < outcome.out.size(); ++o) {
    if (trial.out_req[o] == OpReqType::kNullOp) continue;  // checked for unchanged bytes
    const Values* old = trial.out_req[o] == OpReqType::kAddTo ? &setup.old_out[o] : nullptr;
    Compare(format("output {}", o), setup.out[o].type, outcome.out[o],
            want(case_.check ? baseline_->out[o] : n.out[o]), old);
  }
  for (size_t i = 0; i < outcome.in_grad.size(); ++i) {
    if (trial.grad_req[i] == OpReqType::kNullOp) continue;
    const Values* old = trial.grad_req[i] == OpReqType::kAddTo ? &setup.old_grad[i] : nullptr;
    if (case_.check && baseline_->in_grad.empty()) continue;
    Compare(format("gradient {}", i), setup.in[i].type, outcome.in_grad[i],
            case_.check ? want(baseline_->in_grad[i]) : n.grad[i], old);
  }
  const Arrays &forward = case_.check ? baseline_->aux_after_forward : n.aux_after_forward,
               &backward = case_.check ? baseline_->aux_after_backward : n.aux_after_backward;
  for (size_t i = 0; i < outcome.aux_after_forward.size(); ++i) {
    Compare(format("auxiliary state {} after forward", i), setup.aux[i].type,
            outcome.aux_after_forward[i], want(forward[i]), nullptr);
  }
  for (size_t i = 0; i < std::min(outcome.aux_after_backward.size(), backward.size()); ++i) {
    Compare(format("auxiliary state {} after backward", i), setup.aux[i].type,
            outcome.aux_after_backward[i], want(backward[i]), nullptr);
  }
}

void Examiner::ExamineOffer(const PassSetup& setup, const CaseNumbers& n, const KernelEntry& kernel,
                            const PassTrial& base, Plan* plan) {
  {
    Pass pass(setup, base);
    pass.Plan();
    *plan = pass.plan();
    const PassOutcome outcome = pass.Run();
    CompareOutcome(n, setup, base, kernel, outcome);
    if (base.backward && !outcome.backward_ran) Problem("backward did not run");
    const PassOutcome again = plan->deterministic ? pass.Run() : outcome;
    const auto same = [](const Arrays& a, const Arrays& b) {
      return std::equal(
          a.begin(), a.end(), b.begin(), b.end(), [](const Values& x, const Values& y) {
            return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](double p, double q) {
              return p == q || (std::isnan(p) && std::isnan(q));
            });
          });
    };
    if (!same(outcome.out, again.out) || !same(outcome.in_grad, again.in_grad))
      Problem("a second run gives different numbers");
  }
  const std::string where = where_;
  for (const PassTrial& trial : Trials(n, *plan, base)) {
    if (!TrialHasItsTurn()) continue;
    where_ = format("{}, {}", where, trial.what);
    Pass pass(setup, trial);
    if (pass.Plan()) {
      CompareOutcome(n, setup, trial, kernel, pass.Run());
    } else if (MustTake(kernel) || (trial.required && Listed(case_.must_accept, kernel.name))) {
      Problem("the kernel refused: " + pass.refusal());
    }
  }
  where_ = where;
}

// A kernel that refuses to compute every gradient is tried again for all except that of input 0:
// the first layer of a net.
void Examiner::ExamineKernel(const CaseNumbers& n, const KernelEntry& kernel) {
  PassSetup setup = n.setup;
  setup.kernel = &kernel;
  baseline_.reset();
  std::vector<std::vector<Layout>> seen;  // inputs, then outputs
  std::string refusal;
  const auto examine = [&](PassTrial base) {
    Pass probe(setup, base);
    if (!probe.Plan()) {
      if (refusal.empty()) refusal = probe.refusal();
      return;
    }
    std::vector<Layout> layouts = probe.plan().in;
    layouts.insert(layouts.end(), probe.plan().out.begin(), probe.plan().out.end());
    if (std::find(seen.begin(), seen.end(), layouts) != seen.end()) return;
    seen.push_back(layouts);
    std::string names;
    for (const Layout& layout : layouts) names += (names.empty() ? "" : " ") + layout.Name();
    where_ =
        format("case '{}', kernel '{}', {} ({})", case_.name, kernel.name, NameOf(n.type), names);
    Plan plan;
    ExamineOffer(setup, n, kernel, base, &plan);
  };
  PassTrial base = on_.WriteTrial(n);
  const auto examine_offers = [&] {
    for (const auto& offer : Offers()) {
      base.offer = offer;
      examine(base);
    }
  };
  examine_offers();
  if (seen.empty() && base.grad_req.size() > 1) {
    base.grad_req[0] = OpReqType::kNullOp;
    examine_offers();
  }
  report_.kernels.push_back({kernel.name, n.type, seen.empty() ? refusal : ""});
  const bool must =
      MustTake(kernel) || (Listed(case_.must_accept, kernel.name) && n.type == DType::kFloat32);
  if (seen.empty() && must) {
    report_.problems.push_back(format("case '{}': kernel '{}' refuses {}: {}", case_.name,
                                      kernel.name, NameOf(n.type), refusal));
  }
}

// A composite's graph is held to the same numbers as its kernels.
void Examiner::ExamineLowered(const CaseNumbers& n) {
  const executor::GradReq write =
      n.differentiable ? executor::GradReq::kWrite : executor::GradReq::kNull;
  if (case_.check) {
    where_ = format("case '{}', lowered, {}", case_.name, NameOf(n.type));
    const LoweredOutcome outcome = RunLowered(case_, n.setup, write, true);
    ++report_.trials;
    for (const std::string& problem :
         case_.check({"graph", n.type, n.setup.in_values, n.setup.aux_values, n.setup.head_values,
                      outcome.out, outcome.in_grad}))
      Problem(problem);
    return;
  }
  const struct {
    const char* what;
    executor::GradReq grad;
    bool reference;
  } trials[] = {{"write", write, true},
                {"no backward pass", executor::GradReq::kNull, true},
                {"accumulate gradients", executor::GradReq::kAdd, true},
                {"every kernel", write, false}};
  for (const auto& trial : trials) {
    if (trial.grad == executor::GradReq::kAdd && !n.differentiable) continue;
    where_ = format("case '{}', lowered, {}, {}", case_.name, NameOf(n.type), trial.what);
    const LoweredOutcome outcome = RunLowered(case_, n.setup, trial.grad, trial.reference);
    const double slack = case_.lowered_epsilons * EpsilonOf(n.type);
    ++report_.trials;
    for (size_t o = 0; o < outcome.out.size(); ++o)
      Compare(format("output {}", o), n.setup.out[o].type, outcome.out[o], {n.out[o], {}, slack},
              nullptr);
    for (size_t i = 0; i < outcome.in_grad.size(); ++i) {
      if (!property_.HasGradient(static_cast<int>(i))) continue;
      const Values* old = trial.grad == executor::GradReq::kAdd ? &n.setup.old_grad[i] : nullptr;
      Expectation expected = n.grad[i];
      expected.slack += slack;
      Compare(format("gradient {}", i), n.setup.in[i].type, outcome.in_grad[i], expected, old);
    }
  }
}

// Integers are refused, by type inference or by the plan, or are supported: no kernel throws
// because of their type.
void Examiner::ExamineIntegers(DType type) {
  CaseNumbers n;
  n.type = type;
  try {
    n.setup = on_.MakeSetup({type});
  } catch (const Error&) {
    return;
  }
  for (const KernelEntry* kernel : registry_.Kernels(case_.op, on_.ctx().type)) {
    n.setup.kernel = kernel;
    const PassTrial trial = on_.WriteTrial(n);
    Pass pass(n.setup, trial);
    if (!pass.Plan()) continue;
    where_ = format("case '{}', kernel '{}', {}", case_.name, kernel->name, NameOf(type));
    try {
      pass.Run();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kConfig)
        Problem(format("the plan accepts what the kernel rejects: {}", error.what()));
    }
  }
}

}  // namespace

CaseReport ExamineKernels(const CaseOnDevice& c, const OperatorRegistry& registry) {
  return Examiner(c, registry).Examine();
}

}  // namespace mxtrain::test
