// SPDX-License-Identifier: Apache-2.0
#include "tests/support/operator_case.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "mxtrain/base/format.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/composite.h"
#include "tests/support/lowered_pass.h"
#include "tests/support/operator_pass.h"

namespace mxtrain::test {
namespace {

// Expected values of an array: all, or at some elements only (`at` not empty).
struct Expectation {
  Values values;
  std::vector<int64_t> at;
  double slack = 0;  // error of the expected value itself
};

// Truncation and rounding of central differences in double, with a margin.
constexpr double kDifferenceSlack = 1e-7;
constexpr int64_t kMaxDifferences = 48;  // elements of an input whose gradient is measured

// Of the data and, if they need not be the same, of the outputs.
struct Types {
  DType data = DType::kUnknown, out = DType::kUnknown;
};

// Everything shared by all kernels of a case and type.
struct Numbers {
  DType type = DType::kUnknown;
  PassSetup setup;  // without kernel
  bool differentiable = false;
  Arrays out, aux_after_forward, aux_after_backward;
  std::vector<Expectation> grad;
};

class Examiner {
 public:
  Examiner(const OperatorCase& c, const OperatorRegistry& registry, Backend& backend, Context ctx)
      : case_(c),
        registry_(registry),
        backend_(backend),
        ctx_(ctx),
        property_(registry.Create(c.op, c.kwargs)) {}

  CaseReport Examine() {
    for (const DType type : case_.types) {
      if (!IsLeftOut(type)) ExamineNumbers(MakeNumbers({type}));
    }
    more_types_ = true;
    for (const Types& types : MoreTypes()) {
      if (const auto numbers = NumbersIfTaken(types)) ExamineNumbers(*numbers);
    }
    more_types_ = false;
    for (const DType type : {DType::kUint8, DType::kInt32, DType::kInt64}) {
      if (std::find(case_.types.begin(), case_.types.end(), type) == case_.types.end())
        ExamineIntegers(type);
    }
    return std::move(report_);
  }

  // The operator's draws, or its new weights, belong to elements, whatever their place in memory
  // and the type they are stored in.
  bool IsRandomOrUpdate() const;
  bool IsComposite() const;

  PassSetup MakeSetup(const Types& types) const;
  Numbers MakeNumbers(const Types& types) const;
  PassTrial WriteTrial(const Numbers& n) const;
  std::vector<std::vector<std::optional<Layout>>> Offers() const;

 private:
  // MXTRAIN_CASE_FLOAT64=0: for builds with sanitizers, which see nothing in float64 that they do
  // not see in float32, an instance of the same templates.
  bool IsLeftOut(DType type) const {
    static const char* const wanted = std::getenv("MXTRAIN_CASE_FLOAT64");
    const bool also = std::count(case_.types.begin(), case_.types.end(), DType::kFloat32) > 0;
    return type == DType::kFloat64 && also && wanted && std::string_view(wanted) == "0";
  }
  std::vector<Types> MoreTypes() const;
  std::optional<Numbers> NumbersIfTaken(const Types& types) const;
  void ExamineNumbers(const Numbers& n);
  std::vector<OpReqType> GradReq(const Numbers& n, OpReqType req) const;
  std::vector<PassTrial> Trials(const Numbers& n, const Plan& plan, const PassTrial& base) const;
  void ExamineKernel(const Numbers& n, const KernelEntry& kernel);
  void ExamineIntegers(DType type);
  // The last kernel takes everything, unless a graph replaces what no kernel takes, or the case
  // does not ask for the type.
  bool MustTake(const KernelEntry& kernel) const {
    return kernel.rank == kRefRank && !IsComposite() && !more_types_;
  }
  void ExamineLowered(const Numbers& n);
  void ExamineOffer(const PassSetup& setup, const Numbers& n, const KernelEntry& kernel,
                    const PassTrial& base, Plan* plan);
  void CompareOutcome(const Numbers& n, const PassSetup& setup, const PassTrial& trial,
                      const KernelEntry& kernel, const PassOutcome& outcome);
  void Compare(const std::string& what, DType type, const Values& actual,
               const Expectation& expected, const Values* old);
  void Problem(const std::string& text) { report_.problems.push_back(where_ + ": " + text); }
  bool Listed(const std::vector<std::string>& kernels, const std::string& kernel) const {
    return std::find(kernels.begin(), kernels.end(), kernel) != kernels.end();
  }

  const OperatorCase& case_;
  const OperatorRegistry& registry_;
  Backend& backend_;
  const Context ctx_;
  std::shared_ptr<const OperatorProperty> property_;
  bool more_types_ = false;  // than the case asks for
  CaseReport report_;
  std::string where_;
  // Of random operators: the first result of a kernel and type.
  std::optional<PassOutcome> baseline_;
};

std::vector<TensorSpec> Specs(const std::vector<TShape>& shapes, const std::vector<DType>& types) {
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < shapes.size(); ++i) specs.push_back({shapes[i], types[i], Layout()});
  return specs;
}

Arrays Draw(const std::vector<TensorSpec>& specs, const std::vector<Generator>& generators,
            uint64_t seed) {
  Arrays arrays;
  for (size_t i = 0; i < specs.size(); ++i) {
    const Generator& generate = generators[std::min(i, generators.size() - 1)];
    arrays.push_back(RoundTo(specs[i].type, generate(specs[i].shape.Size(), seed * 1000 + i)));
  }
  return arrays;
}

// d(sum of head * forward(in)) / d(in[which]) at up to kMaxDifferences elements.
Expectation CentralDifferences(const OperatorCase& c, Arrays in, const Arrays& aux,
                               const Arrays& head, size_t which) {
  const int64_t size = static_cast<int64_t>(in[which].size());
  Expectation expected{Values(in[which].size()), {}, kDifferenceSlack};
  const int64_t stride = std::max<int64_t>(1, size / kMaxDifferences);
  for (int64_t i = 0; i < size; i += stride) {
    const double x = in[which][i], h = 1e-5 * std::max(1.0, std::abs(x));
    in[which][i] = x + h;
    const Arrays high = c.forward(in, aux);
    in[which][i] = x - h;
    const Arrays low = c.forward(in, aux);
    in[which][i] = x;
    double sum = 0;
    for (size_t o = 0; o < head.size(); ++o) {
      for (size_t k = 0; k < head[o].size(); ++k) sum += head[o][k] * (high[o][k] - low[o][k]);
    }
    expected.values[i] = sum / (2 * h);
    expected.at.push_back(i);
  }
  return expected;
}

bool Examiner::IsRandomOrUpdate() const {
  const std::vector<ResourceRequest> requests = property_->ForwardResource(case_.shapes);
  return case_.op.ends_with("_update") ||
         std::any_of(requests.begin(), requests.end(), [](const ResourceRequest& request) {
           return request.type == ResourceRequest::kRandom;
         });
}

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
std::vector<Types> Examiner::MoreTypes() const {
  if (!IsRandomOrUpdate() || case_.types.empty()) return {};
  const DType first = case_.types[0], other = Other(first);
  std::vector<Types> types = {{first, other}};
  if (case_.types.size() == 1) types.push_back({other});
  std::erase_if(types, [this](const Types& t) { return IsLeftOut(t.data) || IsLeftOut(t.out); });
  return types;
}

// None if the operator does not take these types.
std::optional<Numbers> Examiner::NumbersIfTaken(const Types& types) const {
  try {
    return MakeNumbers(types);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    return std::nullopt;
  }
}

void Examiner::ExamineNumbers(const Numbers& n) {
  for (const KernelEntry* kernel : registry_.Kernels(case_.op, ctx_.type))
    ExamineKernel(n, *kernel);
  if (IsComposite() && ctx_.type == DeviceType::kCPU) ExamineLowered(n);
}

PassSetup Examiner::MakeSetup(const Types& types) const {
  const size_t count = property_->ListArguments().size();
  if (case_.shapes.size() != count)
    Throw(ErrorKind::kBug, "case '{}': {} shapes for {} arguments", case_.name, case_.shapes.size(),
          count);
  std::vector<TShape> in_shapes = case_.shapes, out_shapes(property_->NumOutputs()),
                      aux_shapes(property_->ListAuxiliaryStates().size());
  if (!property_->InferShape(&in_shapes, &out_shapes, &aux_shapes))
    Throw(ErrorKind::kBug, "case '{}': shapes stay unknown", case_.name);
  std::vector<DType> in_types(count, DType::kUnknown),
      out_types(out_shapes.size(), DType::kUnknown), aux_types(aux_shapes.size(), DType::kUnknown);
  if (case_.input_types.size() > count)
    Throw(ErrorKind::kBug, "case '{}': {} types for {} arguments", case_.name,
          case_.input_types.size(), count);
  std::copy(case_.input_types.begin(), case_.input_types.end(), in_types.begin());
  if (count > 0 && in_types[0] == DType::kUnknown) in_types[0] = types.data;
  if (types.out != DType::kUnknown) std::fill(out_types.begin(), out_types.end(), types.out);
  if (!property_->InferType(&in_types, &out_types, &aux_types))
    Throw(ErrorKind::kBug, "case '{}': types stay unknown", case_.name);

  PassSetup s;
  s.property = property_.get();
  s.ctx = ctx_;
  s.backend = &backend_;
  s.is_train = case_.is_train;
  s.in = Specs(in_shapes, in_types);
  s.out = Specs(out_shapes, out_types);
  s.aux = Specs(aux_shapes, aux_types);
  s.in_values = Draw(s.in, case_.inputs, case_.seed);
  s.aux_values = Draw(s.aux, case_.aux, case_.seed + 100);
  s.head_values = Draw(s.out, {Uniform(-1, 1)}, case_.seed + 200);
  for (int i = property_->NumVisibleOutputs(); i < property_->NumOutputs(); ++i) {
    std::fill(s.head_values[i].begin(), s.head_values[i].end(), 0.0);
  }
  s.old_out = Draw(s.out, {Uniform(-1, 1)}, case_.seed + 300);
  s.old_grad = Draw(s.in, {Uniform(-1, 1)}, case_.seed + 400);
  return s;
}

Numbers Examiner::MakeNumbers(const Types& types) const {
  Numbers n;
  n.type = types.data;
  n.setup = MakeSetup(types);
  const PassSetup& s = n.setup;
  n.differentiable = case_.backward;
  if (case_.check) return n;

  n.out = case_.forward(s.in_values, s.aux_values);
  n.aux_after_forward =
      case_.aux_after_forward ? case_.aux_after_forward(s.in_values, s.aux_values) : s.aux_values;
  n.aux_after_backward = case_.aux_after_backward
                             ? case_.aux_after_backward(s.in_values, s.aux_values)
                             : n.aux_after_forward;
  if (!n.differentiable) return n;
  const Arrays gradient =
      case_.gradient ? case_.gradient(s.in_values, s.aux_values, s.head_values) : Arrays();
  for (size_t i = 0; i < s.in.size(); ++i) {
    if (!property_->HasGradient(static_cast<int>(i))) {
      n.grad.emplace_back();
    } else if (case_.gradient) {
      n.grad.push_back({gradient.at(i), {}, 0});
    } else {
      n.grad.push_back(CentralDifferences(case_, s.in_values, s.aux_values, s.head_values, i));
    }
  }
  return n;
}

std::vector<OpReqType> Examiner::GradReq(const Numbers& n, OpReqType req) const {
  std::vector<OpReqType> result;
  for (size_t i = 0; i < n.setup.in.size(); ++i) {
    result.push_back(property_->HasGradient(static_cast<int>(i)) ? req : OpReqType::kNullOp);
  }
  return result;
}

PassTrial Examiner::WriteTrial(const Numbers& n) const {
  PassTrial trial;
  trial.what = "write";
  trial.backward = n.differentiable;
  trial.out_req.assign(n.setup.out.size(), OpReqType::kWriteTo);
  if (n.differentiable) trial.grad_req = GradReq(n, OpReqType::kWriteTo);
  trial.offer.resize(n.setup.in.size());
  return trial;
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
        offers.back()[i] = backend_.Intern(BlockedLayout::FromName(name));
    }
  }
  return offers;
}

std::vector<PassTrial> Examiner::Trials(const Numbers& n, const Plan& plan,
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
  const int visible = property_->NumVisibleOutputs();
  if (base.backward && visible < property_->NumOutputs()) {
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
    if (!property_->HasGradient(pair.to)) continue;
    add(format("gradient {} in place of head gradient {}", pair.to, pair.from),
        [&](PassTrial& t) { t.backward_pair = pair; });
  }
  for (size_t i = 0; i < n.setup.in.size(); ++i) {
    if (!property_->HasGradient(static_cast<int>(i))) continue;
    add(format("gradient {} not requested", i), [&](PassTrial& t) {
      t.grad_req[i] = OpReqType::kNullOp;
      t.required = case_.any_gradients;
    });
  }
  return trials;
}

void Examiner::Compare(const std::string& what, DType type, const Values& actual,
                       const Expectation& expected, const Values* old) {
  if (actual.size() != expected.values.size()) {
    return Problem(format("{} has {} elements, but the reference has {}", what, actual.size(),
                          expected.values.size()));
  }
  const double compute =
      IsFloating(type) ? EpsilonOf(type == DType::kFloat64 ? type : DType::kFloat32) : 0;
  const double storage = EpsilonOf(type) > compute ? 4 * EpsilonOf(type) : 0;
  const double relative = case_.tolerance.epsilons * compute + storage +
                          (old != nullptr ? 2 * EpsilonOf(type) : 0) + expected.slack;
  const int64_t count =
      static_cast<int64_t>(expected.at.empty() ? actual.size() : expected.at.size());
  int64_t wrong = 0;
  std::string first;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t i = expected.at.empty() ? k : expected.at[k];
    const double want = expected.values[i] + (old != nullptr ? (*old)[i] : 0);
    const double allowed = relative * std::max({1.0, std::abs(expected.values[i]), std::abs(want)});
    const bool good = std::isfinite(want)
                          ? std::abs(actual[i] - want) <= allowed
                          : (std::isnan(want) ? std::isnan(actual[i]) : actual[i] == want);
    if (good) continue;
    if (wrong++ == 0)
      first = format("element {} is {}, expected {} (allowed error {:.3g})", i, actual[i], want,
                     allowed);
  }
  if (wrong > 0) Problem(format("{}: {} of {} elements wrong, {}", what, wrong, count, first));
}

void Examiner::CompareOutcome(const Numbers& n, const PassSetup& setup, const PassTrial& trial,
                              const KernelEntry& kernel, const PassOutcome& outcome) {
  ++report_.trials;
  for (const std::string& problem : outcome.problems) Problem(problem);
  if (outcome.allocations > 0 && ctx_.type == DeviceType::kCPU &&
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

void Examiner::ExamineOffer(const PassSetup& setup, const Numbers& n, const KernelEntry& kernel,
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
void Examiner::ExamineKernel(const Numbers& n, const KernelEntry& kernel) {
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
  PassTrial base = WriteTrial(n);
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

bool Examiner::IsComposite() const {
  Lowering graph(case_.shapes, property_->NumOutputs());
  return property_->Lower(&graph);
}

// A composite's graph is held to the same numbers as its kernels.
void Examiner::ExamineLowered(const Numbers& n) {
  const executor::GradReq write =
      n.differentiable ? executor::GradReq::kWrite : executor::GradReq::kNull;
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
      if (!property_->HasGradient(static_cast<int>(i))) continue;
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
  Numbers n;
  n.type = type;
  try {
    n.setup = MakeSetup({type});
  } catch (const Error&) {
    return;
  }
  for (const KernelEntry* kernel : registry_.Kernels(case_.op, ctx_.type)) {
    n.setup.kernel = kernel;
    const PassTrial trial = WriteTrial(n);
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

double BestNanoseconds(int repetitions, const std::function<void()>& run) {
  double best = 0;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const double ns =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    best = i == 0 ? ns : std::min(best, ns);
  }
  return best;
}

}  // namespace

namespace {

// The setting of TestOn.
Context test_context = Context::cpu();
std::shared_ptr<const OperatorRegistry> test_registry;
Backend* test_backend = nullptr;

// A build without oneDNN has none of its kernels; tests require them only if present.
bool InThisBuild(const std::string& kernel) {
  if (kernel != "onednn") return true;
  const auto kernels = TestRegistry().Kernels("Convolution", DeviceType::kCPU);
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const KernelEntry* r) { return r->name == kernel; });
}

}  // namespace

// The case with images for its arrays (an update's scalars excepted), if the operator takes them:
// results in every layout are compared with the first one. None if the case has images itself.
std::optional<OperatorCase> OnImages(const OperatorCase& c, const OperatorProperty& property) {
  const auto is_image = [](const TShape& shape) { return shape.ndim() == 4; };
  if (c.shapes.empty() || std::any_of(c.shapes.begin(), c.shapes.end(), is_image)) return {};
  OperatorCase images = c;
  images.name += ", on images";
  const size_t arrays = c.op.ends_with("_update") ? c.shapes.size() - 1 : 1;
  std::fill_n(images.shapes.begin(), arrays, TShape{3, 16, 2, 3});
  std::fill(images.shapes.begin() + static_cast<std::ptrdiff_t>(arrays), images.shapes.end(),
            TShape());
  std::vector<TShape> out(static_cast<size_t>(property.NumOutputs())),
      aux(property.ListAuxiliaryStates().size());
  try {
    if (!property.InferShape(&images.shapes, &out, &aux)) return {};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    return {};
  }
  images.check = [](const CaseResult&) { return std::vector<std::string>(); };
  images.must_accept.clear();
  return images;
}

CaseReport ExamineCase(const OperatorCase& c, const OperatorRegistry& registry, Backend& backend,
                       Context ctx) {
  Examiner examiner(c, registry, backend, ctx);
  CaseReport report = examiner.Examine();
  if (examiner.IsRandomOrUpdate()) {
    if (const auto images = OnImages(c, *registry.Create(c.op, c.kwargs))) {
      CaseReport more = Examiner(*images, registry, backend, ctx).Examine();
      report.trials += more.trials;
      std::move(more.problems.begin(), more.problems.end(), std::back_inserter(report.problems));
    }
  }
  if (ctx.type != DeviceType::kCPU) return report;  // the case names CPU kernels
  for (const std::string& name : c.must_accept) {
    const bool known =
        std::any_of(report.kernels.begin(), report.kernels.end(),
                    [&](const KernelOutcome& kernel) { return kernel.kernel == name; });
    if (!known && InThisBuild(name))
      report.problems.push_back(
          format("case '{}': operator {} has no kernel '{}'", c.name, c.op, name));
  }
  return report;
}

void TestOn(Context ctx, std::shared_ptr<const OperatorRegistry> registry, Backend* backend) {
  test_context = ctx;
  test_registry = std::move(registry);
  test_backend = backend;
}

CaseReport RunCase(const OperatorCase& c) {
  if (test_backend && TestRegistry().Kernels(c.op, test_context.type).empty()) return {};
  CaseReport report =
      ExamineCase(c, TestRegistry(), test_backend ? *test_backend : TestBackend(), test_context);
  for (const std::string& problem : report.problems) FAIL_CHECK(problem);
  // A composite's kernels may leave everything to its graph, which is examined on the CPU.
  const bool left = test_backend &&
                    std::all_of(report.kernels.begin(), report.kernels.end(),
                                [](const auto& k) { return !k.refusal.empty(); }) &&
                    Examiner(c, TestRegistry(), *test_backend, test_context).IsComposite();
  CHECK((report.trials > 0 || left));
  return report;
}

std::vector<CaseTiming> TimeCase(const OperatorCase& c, DType type, int repetitions,
                                 const OperatorRegistry& registry, Backend& backend) {
  const Examiner examiner(c, registry, backend, Context::cpu());
  const Numbers n = examiner.MakeNumbers({type});
  const PassTrial trial = examiner.WriteTrial(n);
  std::vector<CaseTiming> timings;
  for (const KernelEntry* kernel : registry.Kernels(c.op, DeviceType::kCPU)) {
    PassSetup setup = n.setup;
    setup.kernel = kernel;
    Pass pass(setup, trial);
    if (!pass.Plan()) continue;
    pass.Run();
    CaseTiming timing{kernel->name, BestNanoseconds(repetitions, [&] { pass.Forward(); }), 0};
    if (pass.CanRunBackward())
      timing.backward_ns = BestNanoseconds(repetitions, [&] { pass.Backward(); });
    timings.push_back(timing);
  }
  return timings;
}

const OperatorRegistry& TestRegistry() {
  static const std::shared_ptr<const OperatorRegistry> registry =
      test_registry ? test_registry : BuiltinOperators();
  return *registry;
}

Backend& TestBackend() {
  static const std::unique_ptr<Backend> backend = [] {
    auto made = NewCpuBackend(2);
    made->EnterThread();
    return made;
  }();
  return *backend;
}

bool KernelRan(const CaseReport& report, const std::string& kernel) {
  return test_context.type != DeviceType::kCPU ||
         std::any_of(report.kernels.begin(), report.kernels.end(), [&](const KernelOutcome& o) {
           return o.kernel == kernel && o.refusal.empty();
         });
}

Values Apply(const Values& x, const std::function<double(double)>& f) {
  Values y(x.size());
  std::transform(x.begin(), x.end(), y.begin(), f);
  return y;
}

Values Apply(const Values& x, const Values& y, const std::function<double(double, double)>& f) {
  Values z(x.size());
  std::transform(x.begin(), x.end(), y.begin(), z.begin(), f);
  return z;
}

double Norm(const Values& x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return std::sqrt(sum);
}

}  // namespace mxtrain::test
