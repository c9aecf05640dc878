// SPDX-License-Identifier: Apache-2.0
#pragma once
// The states of a label l of length L are blank, l[0], blank, l[1], ..., blank: S = 2 L + 1.
// Forward computes alpha[t][s], the log of the probability of all beginnings of paths up to step t
// that are in state s there; backward the same of their ends, from the last step. A team processes
// a sequence, a step at a time: its members divide the states. Fold is their barrier.
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/number_reader.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operator/vector_math.h"
#include "mxtrain/operators/ctc_loss/ctc_loss.h"

namespace mxtrain::ctc_loss {

// Rows of this length are given to blocks on a GPU, whose Fold all writes before it precede.
inline constexpr int64_t kBlockLength = 1 << 14;

template <typename Team>
MXTRAIN_HD void AwaitTeam(const Team& team) {
  team.Fold(0, AddBoth{});
}

MXTRAIN_HD inline double LogOfNothing() {
  return -std::numeric_limits<double>::infinity();
}
// log(e^a + e^b + e^c).
MXTRAIN_HD inline double LogSum(double a, double b, double c) {
  const double largest = LargerOf()(LargerOf()(a, b), c);
  if (largest == LogOfNothing()) return largest;
  return largest + std::log(std::exp(a - largest) + std::exp(b - largest) + std::exp(c - largest));
}

// What of a sequence is known from its label and lengths.
struct Sequence {
  int64_t steps = 0, length = 0;
  bool is_valid = true;  // labels are classes, and no blanks
  bool has_path = true;
  MXTRAIN_HD int64_t states() const { return 2 * length + 1; }
};

struct Labels {
  NumberReader label, data_lengths, label_lengths;
  bool has_data_lengths = false, has_label_lengths = false;
  int64_t steps = 0, most = 0, classes = 0;
  int blank_label = kBlankFirst;

  Labels(const CtcLossParam& param, std::span<const TBlob> in)
      : label(in[CtcLossProperty::kLabel]),
        has_data_lengths(param.use_data_lengths),
        has_label_lengths(param.use_label_lengths),
        steps(in[0].shape[0]),
        most(in[1].shape[1]),
        classes(in[0].shape[2]),
        blank_label(param.blank_label) {
    const int data_at = CtcLossProperty::DataLengthsAt(param),
              label_at = CtcLossProperty::LabelLengthsAt(param);
    if (data_at >= 0) data_lengths = NumberReader(in[static_cast<size_t>(data_at)]);
    if (label_at >= 0) label_lengths = NumberReader(in[static_cast<size_t>(label_at)]);
  }

  MXTRAIN_HD static int64_t Clamp(int64_t value, int64_t most) {
    return value < 0 ? 0 : value < most ? value : most;
  }
  MXTRAIN_HD int64_t At(int64_t n, int64_t i) const { return label.Index(n * most + i); }
  MXTRAIN_HD int64_t blank() const { return blank_label == kBlankFirst ? 0 : classes - 1; }
  MXTRAIN_HD bool IsLabel(int64_t value) const {
    return value >= 0 && value < classes && value != blank();
  }
  MXTRAIN_HD Sequence Of(int64_t n) const {
    Sequence sequence;
    sequence.steps = has_data_lengths ? Clamp(data_lengths.Index(n), steps) : steps;
    const int64_t end = has_label_lengths ? Clamp(label_lengths.Index(n), most) : most,
                  padding = blank_label == kBlankFirst ? 0 : -1;
    int64_t repetitions = 0, before = -1;
    for (int64_t i = 0; i < end; ++i) {
      const int64_t value = At(n, i);
      if (!has_label_lengths && value == padding) break;
      if (!IsLabel(value)) sequence.is_valid = false;
      if (value == before) ++repetitions;
      before = value;
      ++sequence.length;
    }
    sequence.has_path = sequence.length + repetitions <= sequence.steps;
    return sequence;
  }
  // The class of each state, by the members of a team.
  template <typename Team>
  MXTRAIN_HD void PutClasses(const Team& team, int64_t n, const Sequence& sequence,
                             int32_t* to) const {
    for (int64_t s = team.rank(); s < sequence.states(); s += team.size())
      to[s] = static_cast<int32_t>(s % 2 == 0 ? blank() : At(n, s / 2));
  }
};

// Throws kData for a label out of range. On other devices the loss becomes NaN instead.
inline void CheckLabels(const OnCpu&, const Labels& labels, int64_t batch) {
  for (int64_t n = 0; n < batch; ++n) {
    const Sequence sequence = labels.Of(n);
    if (sequence.is_valid) continue;
    int64_t i = 0;
    while (labels.IsLabel(labels.At(n, i))) ++i;
    const bool first = labels.blank_label == kBlankFirst;
    Throw(ErrorKind::kData,
          "CTCLoss: label {} at place {} of sequence {} is not in [{}, {}): of {} classes the {} "
          "one is the blank{}",
          labels.At(n, i), i, n, first ? 1 : 0, first ? labels.classes : labels.classes - 1,
          labels.classes, first ? "first" : "last",
          labels.has_label_lengths ? "" : format(", and {} ends a label", first ? 0 : -1));
  }
}
template <typename Device>
void CheckLabels(const Device&, const Labels&, int64_t) {}

// log(sum e^x) of the scores of a step of a sequence.
template <typename T>
struct LogSumOfRow {
  using C = ComputeOf<T>;
  const T* data;
  int64_t classes;
  double* to;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const T* x = data + row * classes;
    C largest = -std::numeric_limits<C>::infinity();
    for (int64_t k = team.rank(); k < classes; k += team.size())
      largest = LargerOf()(largest, static_cast<C>(x[k]));
    largest = team.Fold(largest, LargerOf{});
    double sum = 0;
    if (largest != -std::numeric_limits<C>::infinity()) {
      for (int64_t k = team.rank(); k < classes; k += team.size())
        sum += static_cast<double>(vector_math::Exp(static_cast<C>(x[k]) - largest));
    }
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) to[row] = static_cast<double>(largest) + std::log(sum);
  }
};

// The log of the probability of a class at a step.
template <typename T>
struct LogProbabilities {
  const T* data;          // [T, N, C]
  const double* log_sum;  // [T, N]
  int64_t batch, classes;
  MXTRAIN_HD double operator()(int64_t t, int64_t n, int64_t k) const {
    const int64_t row = t * batch + n;
    return static_cast<double>(data[row * classes + k]) - log_sum[row];
  }
};

// Whether a path may go from state s - 2 to s: past a blank, between labels that differ.
MXTRAIN_HD inline bool SkipsBlank(const int32_t* state_class, int64_t s) {
  return s % 2 == 1 && s > 1 && state_class[s] != state_class[s - 2];
}
// The log of the probability of all paths, from alpha at the last step.
MXTRAIN_HD inline double LogOfPaths(const double* alpha, int64_t states) {
  const double none = LogOfNothing();
  return LogSum(alpha[states - 1], states > 1 ? alpha[states - 2] : none, none);
}

template <typename T>
struct ForwardSequence {
  LogProbabilities<T> log_p;
  Labels labels;
  int64_t most_states, kept_steps;
  double* alpha;         // [N, kept steps, most states]
  int32_t* state_class;  // [N, most states]
  OpReqType req;
  T* loss;

  MXTRAIN_HD double* Alpha(int64_t n, int64_t t) const {
    return alpha + (n * kept_steps + t % kept_steps) * most_states;
  }
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t n) const {
    const Sequence sequence = labels.Of(n);
    if (!sequence.is_valid || !sequence.has_path || sequence.steps == 0) {
      Put(team, n, sequence.is_valid ? 0 : std::numeric_limits<double>::quiet_NaN());
      return;
    }
    const int64_t states = sequence.states();
    int32_t* const classes = state_class + n * most_states;
    labels.PutClasses(team, n, sequence, classes);
    AwaitTeam(team);
    const double none = LogOfNothing();
    for (int64_t t = 0; t < sequence.steps; ++t) {
      double* const now = Alpha(n, t);
      const double* const before = Alpha(n, t + kept_steps - 1);
      // The states that paths begin with, or reach, and from which they can end.
      const int64_t first = states - 2 * (sequence.steps - t), end = 2 * (t + 1);
      for (int64_t s = team.rank(); s < states; s += team.size()) {
        double sum = none;
        if (s >= first && s < end) {
          sum = t == 0 ? 0
                       : LogSum(before[s], s > 0 ? before[s - 1] : none,
                                SkipsBlank(classes, s) ? before[s - 2] : none);
          sum += log_p(t, n, classes[s]);
        }
        now[s] = sum;
      }
      AwaitTeam(team);
    }
    Put(team, n, -LogOfPaths(Alpha(n, sequence.steps - 1), states));
  }
  template <typename Team>
  MXTRAIN_HD void Put(const Team& team, int64_t n, double value) const {
    if (team.rank() == 0 && req != OpReqType::kNullOp)
      Assign(req, loss, n, static_cast<ComputeOf<T>>(value));
  }
};

template <typename T>
struct BackwardSequence {
  using C = ComputeOf<T>;
  LogProbabilities<T> log_p;
  Labels labels;
  int64_t most_states;
  const double* alpha;     // [N, T, most states]
  double* ends;            // [N, 2, most states]: of the step after this one, and of this one
  double* share;           // [N, most states]: of the paths that are in a state at this step
  double* class_share;     // [N, C]: of a class
  int32_t* state_class;    // [N, most states]
  int32_t* next_of_class;  // [N, most states]: the next state of the same class; -1: none
  const T* head;
  OpReqType req;
  T* grad;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t n) const {
    const Sequence sequence = labels.Of(n);
    const bool has_paths = sequence.is_valid && sequence.has_path;
    const double missing = sequence.is_valid ? 0 : std::numeric_limits<double>::quiet_NaN();
    if (has_paths && sequence.steps > 0) Differentiate(team, n, sequence);
    for (int64_t t = has_paths ? sequence.steps : 0; t < labels.steps; ++t) {
      for (int64_t k = team.rank(); k < labels.classes; k += team.size())
        Put(t, n, k, t < sequence.steps ? missing : 0);
    }
  }

 private:
  MXTRAIN_HD void Put(int64_t t, int64_t n, int64_t k, double value) const {
    Assign(req, grad, (t * log_p.batch + n) * labels.classes + k, static_cast<C>(value));
  }
  template <typename Team>
  MXTRAIN_HD void Differentiate(const Team& team, int64_t n, const Sequence& sequence) const {
    const int64_t states = sequence.states();
    int32_t* const classes = state_class + n * most_states;
    int32_t* const next = next_of_class + n * most_states;
    double* const shares = share + n * most_states;
    double* const of_class = class_share + n * labels.classes;
    const double* const alphas = alpha + n * labels.steps * most_states;
    labels.PutClasses(team, n, sequence, classes);
    for (int64_t k = team.rank(); k < labels.classes; k += team.size()) of_class[k] = 0;
    AwaitTeam(team);
    for (int64_t s = team.rank(); s < states; s += team.size()) {
      int64_t other = s + 1;
      while (other < states && classes[other] != classes[s]) ++other;
      next[s] = static_cast<int32_t>(other < states ? other : -1);
    }
    const double total = LogOfPaths(alphas + (sequence.steps - 1) * most_states, states),
                 none = LogOfNothing(), factor = static_cast<double>(head[n]);
    for (int64_t t = sequence.steps - 1; t >= 0; --t) {
      double* const now = ends + (2 * n + t % 2) * most_states;
      const double* const after = ends + (2 * n + (t + 1) % 2) * most_states;
      for (int64_t s = team.rank(); s < states; s += team.size()) {
        double sum = s + 2 < states ? none : 0;
        if (t + 1 < sequence.steps) {
          sum = LogSum(after[s], s + 1 < states ? after[s + 1] : none,
                       s + 2 < states && SkipsBlank(classes, s + 2) ? after[s + 2] : none);
        }
        const double whole = alphas[t * most_states + s] + sum;
        shares[s] = whole == none ? 0 : std::exp(whole - total);
        now[s] = sum + log_p(t, n, classes[s]);
      }
      AwaitTeam(team);
      // The first state of a class sums those of all.
      for (int64_t s = team.rank(); s < states; s += team.size()) {
        const bool is_first = s == 0 || (s % 2 == 1 && IsFirst(classes, s));
        if (!is_first) continue;
        double sum = 0;
        for (int64_t other = s; other >= 0; other = next[other]) sum += shares[other];
        of_class[classes[s]] = sum;
      }
      AwaitTeam(team);
      for (int64_t k = team.rank(); k < labels.classes; k += team.size()) {
        const C p = vector_math::Exp(static_cast<C>(log_p(t, n, k)));
        Put(t, n, k, factor * (static_cast<double>(p) - of_class[k]));
      }
    }
  }
  MXTRAIN_HD static bool IsFirst(const int32_t* classes, int64_t s) {
    for (int64_t other = 1; other < s; other += 2) {
      if (classes[other] == classes[s]) return false;
    }
    return true;
  }
};

// The sizes of the arrays that kernels work in.
struct Sizes {
  int64_t steps, batch, classes, states;
  Sizes(const TShape& data, const TShape& label)
      : steps(data[0]), batch(data[1]), classes(data[2]), states(2 * label[1] + 1) {}
  // Doubles of alpha of so many steps, and of the sums of the scores.
  int64_t Alpha(int64_t kept) const { return batch * kept * states; }
  int64_t Sums() const { return steps * batch; }
  int64_t Saved() const { return (Alpha(steps) + Sums()) * 8; }
  int64_t Classes() const { return batch * states * 4; }
  int64_t ForwardScratch(bool keeps) const {
    return Classes() + (keeps ? 0 : (Alpha(kStepsAtOnce) + Sums()) * 8);
  }
  int64_t BackwardScratch() const { return batch * (3 * states + classes) * 8 + 2 * Classes(); }
  static constexpr int64_t kStepsAtOnce = 2;  // without a backward pass
};

template <typename Device>
class CtcLoss final : public Operator {
 public:
  explicit CtcLoss(const CtcLossParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const TBlob& data = args.in_data[0];
    const Sizes size(data.shape, args.in_data[1].shape);
    if (size.batch == 0) return;
    const Device device{args.ctx.run_ctx};
    const Labels labels(param_, args.in_data);
    CheckLabels(device, labels, size.batch);
    const bool keeps = !args.ctx.saved.empty();
    const int64_t kept = keeps ? size.steps : Sizes::kStepsAtOnce;
    double* scratch = args.ctx.workspace.template dptr<double>();
    double* const alpha = keeps ? static_cast<double*>(args.ctx.saved[0].data) : scratch;
    double* const sums = alpha + size.Alpha(kept);
    if (!keeps) scratch = sums + size.Sums();
    SwitchFloating(data.type, "CTCLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* x = data.template dptr<T>();
      ForRowsOfAnyLength(device, size.Sums(), size.classes, LogSumOfRow<T>{x, size.classes, sums});
      ForRows(device, size.batch, kBlockLength,
              ForwardSequence<T>{{x, sums, size.batch, size.classes},
                                 labels,
                                 size.states,
                                 kept,
                                 alpha,
                                 reinterpret_cast<int32_t*>(scratch),
                                 args.req[0],
                                 args.out_data[0].template dptr<T>()});
    });
  }

  void Backward(const BackwardArgs& args) override {
    const TBlob& data = args.in_data[0];
    const Sizes size(data.shape, args.in_data[1].shape);
    if (args.req[0] == OpReqType::kNullOp || size.batch == 0) return;
    const double* alpha = static_cast<const double*>(args.ctx.saved[0].data);
    double* const ends = args.ctx.workspace.template dptr<double>();
    double* const share = ends + 2 * size.batch * size.states;
    double* const class_share = share + size.batch * size.states;
    int32_t* const classes = reinterpret_cast<int32_t*>(class_share + size.batch * size.classes);
    SwitchFloating(data.type, "CTCLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForRows(Device{args.ctx.run_ctx}, size.batch, kBlockLength,
              BackwardSequence<T>{{data.template dptr<T>(), alpha + size.Alpha(size.steps),
                                   size.batch, size.classes},
                                  Labels(param_, args.in_data),
                                  size.states,
                                  alpha,
                                  ends,
                                  share,
                                  class_share,
                                  classes,
                                  classes + size.batch * size.states,
                                  args.out_grad[0].template dptr<T>(),
                                  args.req[0],
                                  args.in_grad[0].template dptr<T>()});
    });
  }

 private:
  const CtcLossParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const CtcLossParam& param = static_cast<const CtcLossProperty&>(base).param();
  const Sizes size(request.in[0].shape, request.in[1].shape);
  if (size.classes > std::numeric_limits<int32_t>::max() ||
      size.states > std::numeric_limits<int32_t>::max())
    return Refusal{"more than 2^31 classes or states"};
  Plan plan = PlainPlan(base, request);
  plan.forward_workspace = size.ForwardScratch(request.needs_backward);
  plan.backward_workspace = size.BackwardScratch();
  if (request.needs_backward) plan.saved = {size.Saved()};
  plan.make = [param] { return std::make_unique<CtcLoss<Device>>(param); };
  return plan;
}

}  // namespace mxtrain::ctc_loss

MXTRAIN_KERNELS(ctc_loss, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("CTCLoss", ctc_loss::MakePlan<Device>));
}
