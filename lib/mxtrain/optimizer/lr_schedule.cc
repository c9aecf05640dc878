// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/optimizer/lr_schedule.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "mxtrain/base/suggest.h"
#include "mxtrain/optimizer/patience.h"

namespace mxtrain {
namespace {

enum Unit { kEpochs, kSteps };

// Epochs or steps beyond which nothing can be scheduled.
constexpr double kLongest = 1e9;

// Parameters of every schedule.
struct WarmupParam {
  double warmup_epochs = 0, warmup_from = 0;
  int64_t warmup_steps = 0;
  int unit = kEpochs;
  template <typename P>
  static void DeclareWarmup(Fields<P>& f) {
    f.Add("warmup_epochs", &P::warmup_epochs)
        .Default(0)
        .Range(0, kLongest)
        .Help("epochs of linear warm-up to the base rate");
    f.Add("warmup_steps", &P::warmup_steps)
        .Default(0)
        .Range(0, kLongest)
        .Help("the same in steps; at most one of the two");
    f.Add("warmup_from", &P::warmup_from)
        .Default(0)
        .Range(0, 1)
        .Help("start of the warm-up, as a factor of the base rate");
  }
};

struct ConstantParam : WarmupParam, Parameter<ConstantParam> {
  static void Declare(Fields<ConstantParam>& f) { DeclareWarmup(f); }
};
struct StepParam : WarmupParam, Parameter<StepParam> {
  double every = 0, factor = 0;
  static void Declare(Fields<StepParam>& f) {
    f.Add("every", &StepParam::every)
        .Required()
        .Range(1e-9, kLongest)
        .Help("interval between reductions, in `unit`");
    f.Add("factor", &StepParam::factor).Default(0.1).Range(0, 1).Help("factor of each reduction");
    f.Add("unit", &StepParam::unit)
        .Enum({{"epochs", kEpochs}, {"steps", kSteps}})
        .Default(kEpochs)
        .Help("of `every`");
    DeclareWarmup(f);
  }
};
struct MultistepParam : WarmupParam, Parameter<MultistepParam> {
  std::vector<double> milestones;
  double factor = 0;
  static void Declare(Fields<MultistepParam>& f) {
    f.Add("milestones", &MultistepParam::milestones)
        .Required()
        .Range(0, kLongest)
        .Help("where the rate is reduced, ascending, in `unit`");
    f.Add("factor", &MultistepParam::factor)
        .Default(0.1)
        .Range(0, 1)
        .Help("factor of each reduction");
    f.Add("unit", &MultistepParam::unit)
        .Enum({{"epochs", kEpochs}, {"steps", kSteps}})
        .Default(kEpochs)
        .Help("of `milestones`");
    DeclareWarmup(f);
  }
};
struct ExponentialParam : WarmupParam, Parameter<ExponentialParam> {
  double every = 0, factor = 0;
  static void Declare(Fields<ExponentialParam>& f) {
    f.Add("factor", &ExponentialParam::factor)
        .Default(0.95)
        .Range(0, 10)
        .Help("factor per `every`; above 1 the rate rises");
    f.Add("every", &ExponentialParam::every)
        .Default(1)
        .Range(1e-9, kLongest)
        .Help("interval of one factor, in `unit`");
    f.Add("unit", &ExponentialParam::unit)
        .Enum({{"epochs", kEpochs}, {"steps", kSteps}})
        .Default(kEpochs)
        .Help("of `every`");
    DeclareWarmup(f);
  }
};
struct PlateauParam : WarmupParam, Parameter<PlateauParam> {
  double factor = 0, min_delta = 0, min = 0;
  int64_t patience = 0, cooldown = 0;
  static void Declare(Fields<PlateauParam>& f) {
    f.Add("factor", &PlateauParam::factor)
        .Default(0.1)
        .Range(0, 1)
        .Help("factor of each reduction");
    f.Add("patience", &PlateauParam::patience)
        .Default(10)
        .Range(1, kLongest)
        .Help("epochs without improvement of the `best` metric before a reduction");
    f.Add("min_delta", &PlateauParam::min_delta)
        .Default(1e-4)
        .Range(0)
        .Help("least change that counts as an improvement");
    f.Add("cooldown", &PlateauParam::cooldown)
        .Default(0)
        .Range(0, kLongest)
        .Help("epochs after a reduction that do not count");
    f.Add("min", &PlateauParam::min)
        .Default(0)
        .Range(0, 1)
        .Help("least rate, as a factor of the base rate");
    DeclareWarmup(f);
  }
};
struct CosineParam : WarmupParam, Parameter<CosineParam> {
  double final_factor = 0;
  static void Declare(Fields<CosineParam>& f) {
    f.Add("final", &CosineParam::final_factor)
        .Default(0)
        .Range(0, 1)
        .Help("rate at the end, as a factor of the base rate");
    DeclareWarmup(f);
  }
};
struct LinearParam : WarmupParam, Parameter<LinearParam> {
  double final_factor = 0;
  static void Declare(Fields<LinearParam>& f) {
    f.Add("final", &LinearParam::final_factor)
        .Default(0)
        .Range(0, 1)
        .Help("rate at the end, as a factor of the base rate");
    DeclareWarmup(f);
  }
};
struct PolyParam : WarmupParam, Parameter<PolyParam> {
  double power = 0, final_factor = 0;
  static void Declare(Fields<PolyParam>& f) {
    f.Add("power", &PolyParam::power)
        .Default(2)
        .Range(0)
        .Help("power of the remaining part of the run");
    f.Add("final", &PolyParam::final_factor)
        .Default(0)
        .Range(0, 1)
        .Help("rate at the end, as a factor of the base rate");
    DeclareWarmup(f);
  }
};
// Has its own warm-up.
struct OneCycleParam : WarmupParam, Parameter<OneCycleParam> {
  enum Curve { kCosine, kLinear };
  double rise = 0, start = 0, final_factor = 0;
  int curve = 0;
  static void Declare(Fields<OneCycleParam>& f) {
    f.Add("rise", &OneCycleParam::rise)
        .Default(0.3)
        .Range(0, 1)
        .Help("fraction of the run in which the rate rises to the base rate");
    f.Add("start", &OneCycleParam::start)
        .Default(0.04)
        .Range(0, 1)
        .Help("rate at the first step, as a factor of the base rate");
    f.Add("final", &OneCycleParam::final_factor)
        .Default(4e-6)
        .Range(0, 1)
        .Help("rate at the last step, as a factor of the base rate");
    f.Add("curve", &OneCycleParam::curve)
        .Enum({{"cosine", kCosine}, {"linear", kLinear}})
        .Default(kCosine)
        .Help("shape of rise and fall");
  }
};

class Schedule : public LrSchedule {
 public:
  void SetWarmup(const WarmupParam& p, int64_t steps_per_epoch, std::string_view name) {
    if (p.warmup_epochs > 0 && p.warmup_steps > 0) {
      Throw(ErrorKind::kConfig, "schedule {}: give warmup_epochs or warmup_steps, not both", name);
    }
    warmup_steps_ = p.warmup_steps > 0
                        ? p.warmup_steps
                        : std::llround(p.warmup_epochs * static_cast<double>(steps_per_epoch));
    warmup_from_ = p.warmup_from;
  }
};

class Constant final : public Schedule {
 public:
  Constant(const ConstantParam&, int64_t, int64_t) {}
  double Shape(int64_t) const override { return 1; }
};

class Reductions final : public Schedule {
 public:
  Reductions(const StepParam& p, int64_t steps_per_epoch, int64_t total_steps) : factor_(p.factor) {
    const double scale = p.unit == kEpochs ? static_cast<double>(steps_per_epoch) : 1;
    for (int k = 1; std::llround(p.every * scale * k) < total_steps; ++k) {
      if (std::llround(p.every * scale) < 1)
        Throw(ErrorKind::kConfig, "schedule step: every = {} is less than one step", p.every);
      steps_.push_back(std::llround(p.every * scale * k));
    }
  }
  Reductions(const MultistepParam& p, int64_t steps_per_epoch, int64_t) : factor_(p.factor) {
    const double scale = p.unit == kEpochs ? static_cast<double>(steps_per_epoch) : 1;
    for (double m : p.milestones) steps_.push_back(std::llround(m * scale));
    if (!std::is_sorted(steps_.begin(), steps_.end()))
      Throw(ErrorKind::kConfig, "schedule multistep: milestones must ascend");
  }
  double Shape(int64_t step) const override {
    const auto passed = std::upper_bound(steps_.begin(), steps_.end(), step) - steps_.begin();
    return std::pow(factor_, static_cast<double>(passed));
  }

 private:
  std::vector<int64_t> steps_;
  double factor_;
};

class Exponential final : public Schedule {
 public:
  Exponential(const ExponentialParam& p, int64_t steps_per_epoch, int64_t)
      : factor_(p.factor),
        every_(p.every * (p.unit == kEpochs ? static_cast<double>(steps_per_epoch) : 1)) {}
  double Shape(int64_t step) const override {
    return std::pow(factor_, static_cast<double>(step - warmup_steps_) / every_);
  }

 private:
  double factor_, every_;  // in steps
};

// Keras' ReduceLROnPlateau: `patience` epochs without improvement lower the rate, and the
// `cooldown` epochs after that do not count.
class Plateau final : public Schedule {
 public:
  Plateau(const PlateauParam& p, int64_t, int64_t)
      : param_(p), patience_(p.patience, p.min_delta) {}
  double Shape(int64_t) const override { return factor_; }
  void EndEpoch(double value, bool higher_is_better) override {
    const bool exhausted = patience_.Exhausted(value, higher_is_better);
    if (cooling_ > 0) {
      --cooling_;
      patience_.Restart();
    } else if (exhausted) {
      factor_ = std::max(factor_ * param_.factor, param_.min);
      cooling_ = param_.cooldown;
      patience_.Restart();
    }
  }
  std::string SaveState() const override {
    return format("plateau {:a} {} {}", factor_, cooling_, patience_.SaveState());
  }
  void RestoreState(const std::string& text) override {
    double factor = 1;
    int64_t cooling = 0;
    int end = 0;
    if (!text.starts_with("plateau ")) return;
    if (std::sscanf(text.c_str(), "plateau %la %" SCNd64 " %n", &factor, &cooling, &end) != 2) {
      Throw(ErrorKind::kData, "'{}' is not a saved state of schedule plateau", text);
    }
    patience_.RestoreState(text.substr(static_cast<size_t>(end)));
    factor_ = factor;
    cooling_ = cooling;
  }

 private:
  PlateauParam param_;
  Patience patience_;
  double factor_ = 1;
  int64_t cooling_ = 0;  // remaining cooldown epochs
};

// Decays by a function of the completed fraction between the end of the warm-up and the last step.
class Falling : public Schedule {
 public:
  Falling(double final_factor, int64_t total_steps) : final_(final_factor), total_(total_steps) {}
  double Shape(int64_t step) const override {
    const double span = static_cast<double>(std::max<int64_t>(total_ - warmup_steps_, 1));
    return final_ + (1 - final_) * Left(std::clamp(static_cast<double>(step - warmup_steps_) / span,
                                                   0.0, 1.0));
  }
  bool SpansRun() const override { return true; }

 private:
  // From 1 (t = 0) to 0 (t = 1).
  virtual double Left(double t) const = 0;
  double final_;
  int64_t total_;
};

class Linear final : public Falling {
 public:
  Linear(const LinearParam& p, int64_t, int64_t total_steps)
      : Falling(p.final_factor, total_steps) {}

 private:
  double Left(double t) const override { return 1 - t; }
};

class Poly final : public Falling {
 public:
  Poly(const PolyParam& p, int64_t, int64_t total_steps)
      : Falling(p.final_factor, total_steps), power_(p.power) {}

 private:
  double Left(double t) const override { return std::pow(1 - t, power_); }
  double power_;
};

// Loshchilov and Hutter, "SGDR", arXiv 1608.03983, without restarts: from the end of the warm-up to
// the last step.
class Cosine final : public Falling {
 public:
  Cosine(const CosineParam& p, int64_t, int64_t total_steps)
      : Falling(p.final_factor, total_steps) {}

 private:
  double Left(double t) const override { return 0.5 * (1 + std::cos(std::numbers::pi * t)); }
};

// Smith and Topin, "Super-convergence", arXiv 1708.07120: up to the base rate, then down to almost
// zero. Only the rate changes, not the momentum.
class OneCycle final : public Schedule {
 public:
  OneCycle(const OneCycleParam& p, int64_t, int64_t total_steps)
      : param_(p),
        last_(static_cast<double>(std::max<int64_t>(total_steps - 1, 1))),
        top_(std::max(p.rise * (last_ + 1) - 1, 0.0)) {}
  double Shape(int64_t step) const override {
    const double at = std::min(static_cast<double>(step), last_);
    if (at < top_) return Between(param_.start, 1, at / top_);
    return last_ > top_ ? Between(1, param_.final_factor, (at - top_) / (last_ - top_)) : 1;
  }
  bool SpansRun() const override { return true; }

 private:
  double Between(double from, double to, double t) const {
    return param_.curve == OneCycleParam::kLinear
               ? from + (to - from) * t
               : to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * t));
  }
  OneCycleParam param_;
  double last_, top_;  // steps of the final and of the base rate
};

struct ScheduleRow {
  const char* name;
  std::unique_ptr<LrSchedule> (*make)(const Kwargs&, int64_t, int64_t, std::string_view);
  std::vector<FieldInfo> (*describe)();
};

template <typename S, typename P>
std::unique_ptr<LrSchedule> Make(const Kwargs& kwargs, int64_t steps_per_epoch, int64_t total_steps,
                                 std::string_view name) {
  P param;
  param.Init(kwargs, format("schedule {}", name));
  auto schedule = std::make_unique<S>(param, steps_per_epoch, total_steps);
  schedule->SetWarmup(param, steps_per_epoch, name);
  return schedule;
}

constexpr ScheduleRow kSchedules[] = {
    {"constant", Make<Constant, ConstantParam>, ConstantParam::Describe},
    {"step", Make<Reductions, StepParam>, StepParam::Describe},
    {"multistep", Make<Reductions, MultistepParam>, MultistepParam::Describe},
    {"exponential", Make<Exponential, ExponentialParam>, ExponentialParam::Describe},
    {"plateau", Make<Plateau, PlateauParam>, PlateauParam::Describe},
    {"cosine", Make<Cosine, CosineParam>, CosineParam::Describe},
    {"linear", Make<Linear, LinearParam>, LinearParam::Describe},
    {"poly", Make<Poly, PolyParam>, PolyParam::Describe},
    {"one_cycle", Make<OneCycle, OneCycleParam>, OneCycleParam::Describe}};

const ScheduleRow& FindSchedule(std::string_view name) {
  for (const ScheduleRow& row : kSchedules) {
    if (name == row.name) return row;
  }
  Throw(ErrorKind::kConfig, "there is no learning rate schedule '{}'{}; use one of {}", name,
        DidYouMean(name, LrSchedule::Names()), join(LrSchedule::Names(), ", "));
}

}  // namespace

std::unique_ptr<LrSchedule> LrSchedule::Create(std::string_view name, const Kwargs& kwargs,
                                               int64_t steps_per_epoch, int64_t total_steps) {
  return FindSchedule(name).make(kwargs, steps_per_epoch, total_steps, name);
}
std::vector<FieldInfo> LrSchedule::Describe(std::string_view name) {
  return FindSchedule(name).describe();
}
std::vector<std::string> LrSchedule::Names() {
  std::vector<std::string> names;
  for (const ScheduleRow& row : kSchedules) names.emplace_back(row.name);
  return names;
}

double LrSchedule::Factor(int64_t step) const {
  if (step < warmup_steps_) {
    const double t = static_cast<double>(step + 1) / static_cast<double>(warmup_steps_ + 1);
    return warmup_from_ + (1 - warmup_from_) * t;
  }
  return Shape(step);
}

}  // namespace mxtrain
