// SPDX-License-Identifier: Apache-2.0
// The loop itself: steps, epochs, evaluation, saves, progress.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/train/internal/run_clock.h"
#include "mxtrain/train/internal/time_left.h"
#include "mxtrain/train/internal/trainer_impl.h"

namespace mxtrain {
namespace {

constexpr double kLeastWait = 1;  // seconds of an epoch, for a slow rank to be named
// Between two looks whether the others rest.
constexpr std::chrono::milliseconds kPauseOfWait{2};

// For tests of slow ranks.
void LingerInStep() {
  if (const char* text = std::getenv("MXTRAIN_STEP_DELAY_MS"))
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(text)));
}

}  // namespace

// `listener` and `stop` as in Trainer::Run.
class Trainer::Impl::Loop {
 public:
  Loop(Impl& impl, TrainListener& listener, std::atomic<int>* stop)
      : t_(impl),
        listener_(listener),
        stop_(stop),
        time_left_(impl.progress.steps_per_epoch(),
                   impl.val ? static_cast<double>(impl.val->examples()) /
                                  static_cast<double>(impl.progress.steps_per_epoch() *
                                                      impl.progress.examples_per_step())
                            : 0) {}

  RunEnd Run();
  void Summarize(RunEnd end);
  // Whether all ranks end by the error that Run has thrown, with nothing in flight.
  bool all_end() const { return agreed_.diverged; }

 private:
  const TrainState& state() const { return t_.progress.state(); }
  bool stopped() const { return t_.ranks.several() ? agreed_.stop : stop_ && *stop_ == 1; }
  bool OutOfTime() const { return t_.ranks.several() ? agreed_.out_of_time : own_out_of_time(); }
  bool own_out_of_time() const;
  bool OwnSaveIsDue() const;
  Wishes OwnWishes() const;
  bool StepFollows() const;
  bool ReportIsDue() const;
  std::vector<std::pair<double, double>> RatesOfEpoch() const;

  template <typename Wait>
  void NoticeDivergence(const Wait& wait);
  void Agree(const Wishes& wishes);

  void TrainEpoch();
  void TrainApart();
  struct Meeting {
    bool unfinished;    // a rank has steps to make in this epoch
    int64_t mean_step;  // in the epoch
  };
  Meeting Meet(bool unfinished);
  bool MeetingIsDue() const;
  Wishes WishesApart() const;
  void PauseClock();
  void ReportStep();
  void WarnOfTimeLimit(double seconds, double steps_per_second);
  void SaveWhereDue();
  void TakeRequest();
  void SaveNow();
  void NameSlowRank(const EpochEvent& e);
  void WarnOfUndefined(const NamedValues& values, bool of_validation);
  void ReportTimes(StepEvent* e);
  double WithinLimit(double seconds_left) const;
  NamedValues Validate();
  void EndEpoch();
  void SaveEpoch(std::vector<std::string> names, bool complete);

  Impl& t_;
  TrainListener& listener_;
  std::atomic<int>* const stop_;
  bool diverged_ = false;     // this rank of several, as far as the training thread knows
  Wishes agreed_;             // by several ranks, so far
  std::set<int> named_slow_;  // ranks
  bool undefined_said_ = false, diverged_said_ = false;  // why an epoch cannot be the best
  int64_t step_saved_for_ = -1;                          // the last with a meeting
  RunClock clock_;
  TimeLeft time_left_;
  double besides_seconds_ = 0;  // of the epoch, in saves, validation and reports
  LossReport::Sums reported_;   // sums at the last reported step or the start of the epoch
};

void Trainer::Impl::Save(const std::vector<std::string>& names, TrainListener& listener) {
  if (options.checkpoint_folder.empty()) return;
  const auto begin = RunClock::Time::now();
  runtime.engine().WaitForAll();
  ranks.Merge(&scores);
  const TrainState& state = progress.state();
  saved_step = state.step;
  ParameterUpdates::OfRanks of_ranks = updates->Gather(/*keep=*/ranks.first());
  if (!ranks.first()) return;
  const CheckpointFolder folder(options.checkpoint_folder);
  folder.Save(Snapshot(std::move(of_ranks)), names, options.save.keep);
  listener.OnSave({folder.File("last"), state.epoch, state.step, RunClock::SecondsSince(begin)});
}

// What was pushed no longer waits for other ranks, and ends by the same error. `lost`: this error
// is that of ranks which do not meet; throws what left this one without its part, if anything did.
void Trainer::Impl::EndAlone(const std::exception_ptr& error, bool lost) {
  if (!ranks.several()) return;
  ranks.Fail(error);
  try {
    runtime.engine().WaitForAll();
  } catch (const Error& pushed) {
    if (lost && pushed.kind() != kRankLost) throw;
  } catch (const std::exception&) {  // as `error` says
  }
}

TrainResult Trainer::Impl::Run(TrainListener& listener, std::atomic<int>* stop) {
  MXTRAIN_ASSERT(!options.model.lora || !options.model.lora->base.checksum.empty());  // Begin
  result = {};
  Loop loop(*this, listener, stop);
  try {
    loop.Summarize(loop.Run());
    return result;
  } catch (const Error& e) {
    if (!loop.all_end()) EndAlone(std::current_exception(), e.kind() == kRankLost);
    if (e.kind() != ErrorKind::kDiverged) throw;
    loop.Summarize(RunEnd::kDiverged);
    if (!batches->diverged()) throw;
    result.steps = batches->diverged()->step();  // later ones may have been started
    throw DivergedError(*batches->diverged());
  } catch (...) {
    EndAlone(std::current_exception(), /*lost=*/false);
    throw;
  }
}

void Trainer::Impl::BeginRound() {
  saved_step = -1;  // steps of a few ranks may leave their mean as it is
  // The same during a round.
  const int64_t offset = progress.Position() - progress.state().step;
  updates->BeginRound(progress.state().step,
                      [this, offset](int64_t step) { return LearningRate(step + offset); });
}

void Trainer::Impl::EndRound() {
  Rounds& rounds = *updates->rounds();
  rounds.Rest(/*call=*/false);
  while (!rounds.AllRest()) std::this_thread::sleep_for(kPauseOfWait);
  ranks.Agree({});
  rounds.End();
}

void Trainer::Impl::WaitForPushed() {
  // Others push without end.
  updates->rounds() ? batches->WaitForAll() : runtime.engine().WaitForAll();
}

void Trainer::Impl::Rehearse() {
  DataBatch batch;
  if (features) batch = features->Rehearse();
  if (!features) train.Reset(progress.state().epoch);
  do {
    if (!features && !train.Next(&batch)) break;
    Step(batch);
  } while (batches_of_step > 0);
  WaitForPushed();
  if (updates->rounds()) EndRound();
  if (net->evaluation()) {
    bool seen = false;
    net->evaluation()->Run({}, [&seen] { return std::exchange(seen, true); });
  }
  if (!frozen || !options.freeze.Unfreezes() || options.freeze.epochs >= options.epochs) return;
  BindUnfrozen();  // takes more memory
  Rehearse();
}

void Trainer::Impl::Step(const DataBatch& batch) {
  if (updates->rounds() && !updates->rounds()->begun()) BeginRound();
  batches->Begin();
  const auto begin = RunClock::Time::now();
  if (options.grad_accum > 1 && batches_of_step == 0) updates->ZeroGradients();
  const int64_t step = progress.state().step;
  const bool shown = watch && batches_of_step == 0;
  if (shown) watch->BeginBatch(step + 1);
  net->Step(batch);
  if (shown) watch->EndBatch();
  const bool whole = ++batches_of_step == options.grad_accum;
  if (whole) updates->Push(step, LearningRate(progress.Position()), batch);
  if (whole && watch) watch->EndStep(step + 1);
  batches->End(batch, *net, *updates, whole, step);
  push_seconds += RunClock::SecondsSince(begin);
  progress.AddBatch(batch.count * ranks.size());
  if (!whole) return;
  batches_of_step = 0;
  progress.AddStep();
  LingerInStep();
}

bool Trainer::Impl::Loop::own_out_of_time() const {
  return t_.options.time_limit_seconds > 0 &&
         RunClock::SecondsSince(clock_.start) >= t_.options.time_limit_seconds;
}

bool Trainer::Impl::Loop::OwnSaveIsDue() const {
  const double every = t_.options.save.every_seconds;
  const bool by_time = every > 0 && RunClock::SecondsSince(clock_.last_save) >= every;
  return by_time || (stop_ && *stop_ == 2);
}

Wishes Trainer::Impl::Loop::OwnWishes() const {
  return {stop_ && *stop_ == 1, OwnSaveIsDue(), own_out_of_time(), diverged_};
}

// A loss that is not finite ends a run at once, but several ranks together: the others need what
// this one has still to send, and rank 0 writes the results.
template <typename Wait>
void Trainer::Impl::Loop::NoticeDivergence(const Wait& wait) {
  if (!t_.ranks.several()) return wait();
  try {
    wait();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kDiverged || !t_.batches->diverged()) throw;
    diverged_ = true;
  }
}

// `wishes`: granted by all ranks.
void Trainer::Impl::Loop::Agree(const Wishes& wishes) {
  agreed_ |= wishes;
  if (!agreed_.diverged) return;
  const std::string text = t_.ranks.FirstText(diverged_ ? t_.batches->diverged()->what() : "");
  try {
    t_.runtime.engine().WaitForAll();
  } catch (const Error&) {  // what diverged
  }
  if (diverged_) throw DivergedError(*t_.batches->diverged());
  throw DivergedError(format("on another rank {}", text), state().step, {});
}

RunEnd Trainer::Impl::Loop::Run() {
  listener_.OnStart(t_.Describe());
  const bool ready =
      !t_.features || t_.progress.finished() || t_.features->Fill([this] { return stopped(); });
  // From here on the extension is what `last` continues.
  if (t_.extended && !t_.progress.finished()) t_.Save({}, listener_);
  clock_.Resume(t_.batches->data_wait().seconds());
  while (ready && !t_.progress.finished() && !stopped() && !OutOfTime()) {
    t_.ranks.StartWaiting();
    t_.updates->rounds() ? TrainApart() : TrainEpoch();
    if (!state().open || (stopped() && !t_.progress.epoch_complete())) break;
    EndEpoch();
  }
  const bool complete = t_.progress.finished() && !stopped();
  // A run without steps: its result is the initial state.
  if (complete && state().step == 0) t_.Save({"best"}, listener_);
  if (!complete && t_.saved_step != state().step) t_.Save({}, listener_);
  t_.runtime.engine().WaitForAll();
  if (stopped()) return RunEnd::kStopped;
  if (complete && t_.progress.ReachesTarget(t_.best.first().value, t_.best.HigherIsBetter()))
    return RunEnd::kTarget;
  if (state().ended_early) return RunEnd::kNoImprovement;
  return complete ? RunEnd::kComplete : RunEnd::kTimeLimit;
}

void Trainer::Impl::Loop::Summarize(RunEnd end) {
  TrainResult& result = t_.result;
  const int64_t position = t_.progress.Position();
  result.end = end;
  result.epochs = state().epoch;
  result.steps = state().step;
  result.total_steps = t_.progress.total_steps();
  result.lr = t_.LearningRate(std::max<int64_t>(position - 1, 0));
  result.last_lr = t_.LearningRate(std::max<int64_t>(position + t_.progress.steps_left() - 1, 0));
  result.best = t_.best.values();
  result.higher_is_better = t_.best.HigherIsBetter();
  result.images_per_second = clock_.PaceOfRun().ImagesPerSecond();
  result.wait_share = clock_.PaceOfRun().WaitShare();
  result.timed_batches = clock_.PaceOfRun().batches;
  result.is_brief = clock_.is_brief();
}

bool Trainer::Impl::Loop::StepFollows() const {
  if (t_.batches_of_step > 0) return true;  // complete the step
  return t_.progress.steps_left() > 0 && !t_.progress.epoch_complete() && !stopped() &&
         !OutOfTime();
}

// Steps until the end of the epoch or of the run, or until `stop`.
void Trainer::Impl::Loop::TrainEpoch() {
  DataIter& data = t_.TrainData();
  if (state().step_in_epoch == 0) t_.net->ZeroStates();
  data.Reset(state().epoch, state().step_in_epoch * t_.options.grad_accum);
  reported_ = t_.scores.loss().sums();
  DataBatch batch;
  while (StepFollows() && t_.batches->data_wait().Next(data, &batch)) {
    t_.Step(batch);
    // An error of it: its wishes never arrive.
    if (t_.ranks.several()) NoticeDivergence([this] { t_.batches->WaitForOlder(); });
    if (clock_.AddBatch(batch.count * t_.ranks.size())) NoticeDivergence([this] { PauseClock(); });
    if (t_.batches_of_step > 0) continue;
    if (t_.ranks.several()) Agree(t_.ranks.AgreeLater(OwnWishes()));
    if (ReportIsDue()) NoticeDivergence([this] { ReportStep(); });
    SaveWhereDue();
  }
  NoticeDivergence([this] { PauseClock(); });
  if (t_.ranks.several()) Agree(t_.ranks.Agree(OwnWishes()));
}

// The same for ranks that do not wait for each other. They meet where each has made its steps, or
// where one of them wishes something.
void Trainer::Impl::Loop::TrainApart() {
  DataIter& data = t_.TrainData();
  data.Reset(state().epoch, state().step_in_epoch * t_.options.grad_accum);
  reported_ = t_.scores.loss().sums();
  DataBatch batch;
  bool has_data = true, going_on = true;
  do {
    if (!t_.updates->rounds()->begun()) t_.BeginRound();
    while (StepFollows() && (has_data = t_.batches->data_wait().Next(data, &batch))) {
      t_.Step(batch);
      NoticeDivergence([this] { t_.batches->WaitForOlder(); });
      if (clock_.AddBatch(batch.count * t_.ranks.size()))
        NoticeDivergence([this] { PauseClock(); });
      if (t_.batches_of_step > 0) continue;
      if (ReportIsDue()) NoticeDivergence([this] { ReportStep(); });
      if (MeetingIsDue()) break;
    }
    const Meeting meeting = Meet(has_data && StepFollows());
    NoticeDivergence([this] { PauseClock(); });
    going_on = meeting.unfinished && !stopped() && !OutOfTime();
    const int64_t own = state().step_in_epoch;
    // Where they end or save, they are at one place.
    t_.progress.MoveTo(meeting.mean_step);
    if (agreed_.save && !stopped() && !OutOfTime()) {
      TakeRequest();
      SaveNow();
    }
    if (going_on) t_.progress.MoveTo(own);
  } while (going_on);
}

// Of this rank, or of another that calls.
bool Trainer::Impl::Loop::MeetingIsDue() const {
  Rounds& rounds = *t_.updates->rounds();
  rounds.ShowLife();
  return rounds.called() || WishesApart().any();
}

// Saves after so many steps are those of the first rank.
Wishes Trainer::Impl::Loop::WishesApart() const {
  Wishes wishes = OwnWishes();
  const int64_t every = t_.options.save.every_steps;
  wishes.save |=
      every > 0 && t_.ranks.first() && state().step % every == 0 && state().step != step_saved_for_;
  return wishes;
}

// Waits for all ranks, which may take as long as the rest of the epoch, and ends the round.
Trainer::Impl::Loop::Meeting Trainer::Impl::Loop::Meet(bool unfinished) {
  NoticeDivergence([this] { t_.WaitForPushed(); });
  Rounds& rounds = *t_.updates->rounds();
  Wishes own = WishesApart();
  rounds.Rest(own.any());
  const auto begin = RunClock::Time::now();
  while (!rounds.AllRest()) {
    std::this_thread::sleep_for(kPauseOfWait);
    if (own.any()) continue;
    own |= OwnWishes();
    if (own.any()) rounds.Rest(/*call=*/true);
  }
  t_.ranks.AddWaiting(RunClock::SecondsSince(begin));
  Agree(t_.ranks.Agree(own));
  step_saved_for_ = state().step;
  rounds.End();
  const std::vector<int64_t> sums = t_.ranks.Sum({unfinished, state().step_in_epoch});
  return {sums[0] > 0, sums[1] / t_.ranks.size()};
}

// Once everything that this rank has pushed is done.
void Trainer::Impl::Loop::PauseClock() {
  t_.WaitForPushed();
  clock_.Pause(t_.batches->data_wait().seconds());
}

bool Trainer::Impl::Loop::ReportIsDue() const {
  if (t_.options.report_steps > 0) return state().step % t_.options.report_steps == 0;
  return RunClock::SecondsSince(clock_.last_report) >= t_.options.report_seconds;
}

void Trainer::Impl::Loop::ReportStep() {
  const RunProgress& progress = t_.progress;
  StepEvent e;
  e.epoch = state().epoch;
  e.step = state().step;
  e.step_in_epoch = state().step_in_epoch;
  e.steps_per_epoch = progress.steps_per_epoch();
  e.total_steps = progress.total_steps();
  e.lr = t_.LearningRate(progress.Position() - 1);
  t_.batches->WaitForScores();
  t_.updates->ReportLossScale(state().step, listener_);
  e.loss = t_.scores.loss().Total();
  e.recent_loss = t_.scores.loss().TotalSince(reported_);
  reported_ = t_.scores.loss().sums();
  clock_.Pause(t_.batches->data_wait().seconds());
  e.images_per_second = clock_.report.ImagesPerSecond();
  e.wait_share = clock_.report.WaitShare();
  ReportTimes(&e);
  listener_.OnStep(e);
  if (clock_.warmed_up()) {
    WarnOfTimeLimit(e.seconds, static_cast<double>(clock_.batches()) /
                                   static_cast<double>(t_.options.grad_accum) / e.seconds);
  }
  clock_.BeginReport();
}

void Trainer::Impl::Loop::ReportTimes(StepEvent* e) {
  const RunProgress& progress = t_.progress;
  e->seconds = RunClock::SecondsSince(clock_.start);
  e->epochs = progress.epochs();
  time_left_.AddSteps(clock_.report.batches / t_.options.grad_accum, clock_.report.seconds);
  const int64_t of_epoch =
      std::min(progress.steps_per_epoch() - state().step_in_epoch, progress.steps_left());
  e->epoch_seconds_left = WithinLimit(time_left_.Of(of_epoch, 1));
  e->seconds_left = WithinLimit(time_left_.Of(progress.steps_left(), e->epochs - state().epoch));
}

double Trainer::Impl::Loop::WithinLimit(double seconds_left) const {
  const double limit = t_.options.time_limit_seconds;
  if (limit <= 0) return seconds_left;
  return std::clamp(limit - RunClock::SecondsSince(clock_.start), 0.0, seconds_left);
}

// Warns once, after a twentieth of the time, if the rest will not suffice for a schedule that
// decreases until the last step. The schedule itself does not depend on time, since runs would no
// longer be reproducible (docs/decisions/0056-a-time-limit-does-not-bend-the-schedule.md).
void Trainer::Impl::Loop::WarnOfTimeLimit(double seconds, double steps_per_second) {
  const RunProgress& progress = t_.progress;
  const double limit = t_.options.time_limit_seconds;
  if (limit == 0 || t_.warned_of_limit || seconds < limit / 20 || !progress.schedule().SpansRun())
    return;
  t_.warned_of_limit = true;
  // Steps that fit into the rest of the time.
  const auto steps = static_cast<int64_t>(std::max(limit - seconds, 0.0) * steps_per_second);
  if (static_cast<double>(steps) > 0.95 * static_cast<double>(progress.steps_left())) return;
  const int64_t epochs = (progress.Position() + steps) / progress.steps_per_epoch();
  listener_.OnWarning(
      format("at this speed train.time_limit ends the run after about {} of {} steps, before the "
             "schedule '{}' is complete; {}",
             state().step + steps, progress.total_steps(), t_.options.lr_schedule.name,
             epochs > 0 ? format("train.epochs={} fits into the time", epochs)
                        : "an epoch takes longer than that"));
}

// Saves by steps, by time and on request.
void Trainer::Impl::Loop::SaveWhereDue() {
  const SavePolicy& save = t_.options.save;
  const bool by_steps = save.every_steps > 0 && state().step % save.every_steps == 0;
  if (!by_steps && !(t_.ranks.several() ? agreed_.save : OwnSaveIsDue())) return;
  TakeRequest();
  NoticeDivergence([this] { PauseClock(); });
  if (t_.ranks.several()) Agree(t_.ranks.Agree(OwnWishes()));
  SaveNow();
}

void Trainer::Impl::Loop::TakeRequest() {
  int request = 2;
  if (stop_) stop_->compare_exchange_strong(request, 0);  // keep a stop that arrived meanwhile
}

// While the clock is paused.
void Trainer::Impl::Loop::SaveNow() {
  agreed_.save = false;  // wished again meanwhile: for the same save
  const auto begin = RunClock::Time::now();
  t_.Save({}, listener_);
  besides_seconds_ += RunClock::SecondsSince(begin);
  reported_ = t_.scores.loss().sums();  // several ranks merge them
  clock_.last_save = RunClock::Time::now();
  clock_.Resume(t_.batches->data_wait().seconds());
}

// Learning rates of steps spread over the current epoch (EpochEvent::rates).
std::vector<std::pair<double, double>> Trainer::Impl::Loop::RatesOfEpoch() const {
  std::vector<std::pair<double, double>> rates;
  for (const auto& [epochs, position] : t_.progress.StepsOfEpoch())
    rates.emplace_back(epochs, t_.LearningRate(position));
  return rates;
}

void Trainer::Impl::Loop::NameSlowRank(const EpochEvent& e) {
  const SlowRank slow = FindSlowRank(e.waiting, e.seconds);
  if (!t_.ranks.first() || slow.rank < 0 || slow.share * e.seconds < kLeastWait ||
      !named_slow_.insert(slow.rank).second)
    return;
  listener_.OnWarning(format("rank {} is slow: the others wait for it during {:.0f} % of the time",
                             slow.rank, std::min(100.0, 100 * slow.share)));
}

void Trainer::Impl::Loop::WarnOfUndefined(const NamedValues& values, bool of_validation) {
  if (IsNotFinite(FindValue(values, "loss"))) {
    if (!std::exchange(diverged_said_, true))
      listener_.OnWarning(
          "the loss of the validation data is not finite: such an epoch is never the best");
    return;
  }
  const std::string& metric = t_.best.first().metric;
  const std::optional<double> value = FindValue(values, metric);
  if (!value || !std::isnan(*value) || std::exchange(undefined_said_, true)) return;
  listener_.OnWarning(format(
      "{} is undefined for the {} data, as the auc of a single class or a mean over no example is: "
      "such an epoch is never the best",
      metric, of_validation ? "validation" : "training"));
}

// With events that say how far it is.
NamedValues Trainer::Impl::Loop::Validate() {
  ValidationEvent e;
  e.epoch = state().epoch;
  e.epochs = t_.progress.epochs();
  e.total = t_.val->examples();
  e.done = static_cast<double>(state().step) /
           static_cast<double>(std::max<int64_t>(t_.progress.total_steps(), 1));
  const auto begin = RunClock::Time::now();
  auto last_event = begin;
  const double after =
      time_left_.Of(t_.progress.steps_left(), std::max<int64_t>(e.epochs - e.epoch - 1, 0));
  const auto tell = [&] {
    e.run_seconds_left = WithinLimit(e.seconds_left + after);
    listener_.OnValidation(e);
    last_event = RunClock::Time::now();
  };
  tell();
  return t_.net->evaluation()->Run(
      [&](const DataBatch& batch, const std::vector<NDArray>&) {
        e.examples = std::min(e.examples + batch.count * t_.ranks.size(), e.total);
        if (RunClock::SecondsSince(last_event) < t_.options.report_seconds || e.examples == 0)
          return;
        e.seconds_left = RunClock::SecondsSince(begin) * static_cast<double>(e.total - e.examples) /
                         static_cast<double>(e.examples);
        tell();
      },
      [this] { return !t_.ranks.several() && stopped(); },
      [this](EpochScores* scores) { return t_.ranks.Merge(scores); });
}

void Trainer::Impl::Loop::EndEpoch() {
  const auto begin = RunClock::Time::now();
  // Several ranks would stop at different batches of the evaluation.
  if (t_.ranks.several() && stopped()) return;
  t_.updates->ReportLossScale(state().step, listener_);
  Evaluation* const evaluation = t_.net->evaluation();
  EpochEvent e;
  e.epoch = state().epoch + 1;
  e.epochs = t_.progress.epochs();
  e.step = state().step;
  e.lr = t_.LearningRate(std::max<int64_t>(t_.progress.Position() - 1, 0));
  e.rates = RatesOfEpoch();
  e.seconds = clock_.epoch.seconds;
  e.images_per_second = clock_.epoch.ImagesPerSecond();
  clock_.epoch = {};
  e.waiting = t_.ranks.WaitingSeconds();
  NameSlowRank(e);
  if (Rounds* rounds = t_.updates->rounds()) {
    e.staleness = t_.ranks.Sum(rounds->TakeStaleness());
    while (!e.staleness.empty() && e.staleness.back() == 0) e.staleness.pop_back();
  }
  e.train = t_.ranks.Merge(&t_.scores);
  if (evaluation) {
    const WeightAverage::InUse averages(t_.updates->average());
    t_.ranks.Share(t_.net->auxs());
    e.val = Validate();
    if (stopped()) return;  // interrupted: on resume the epoch is ended again, completely
  }
  const NamedValues& values = evaluation ? e.val : e.train;
  t_.result.last = values;
  t_.result.last_is_finite = !IsNotFinite(FindValue(values, "loss"));

  const bool complete = t_.progress.EndEpoch(FindValue(values, t_.best.first().metric),
                                             t_.best.HigherIsBetter(), TieBreakingLoss(values));
  if (complete) t_.scores.Reset();
  const std::vector<std::string> names = t_.best.Update(e.epoch, values);
  e.best = !names.empty() && names[0] == "best";
  if (const std::optional<LossScaleState>& scale = t_.updates->reported_loss_scale()) {
    e.loss_scale = scale->scale;
    e.steps_skipped = scale->steps_skipped;
  }
  listener_.OnEpoch(e);
  WarnOfUndefined(values, evaluation != nullptr);
  SaveEpoch(names, complete);
  time_left_.AddEpoch(std::exchange(besides_seconds_, 0) + RunClock::SecondsSince(begin));
  // Binding may fail for lack of memory; the epoch is then saved.
  if (t_.UnfreezesNow()) t_.Unfreeze();
  clock_.Resume(t_.batches->data_wait().seconds());
}

// `names`: the checkpoints that the epoch is best for.
void Trainer::Impl::Loop::SaveEpoch(std::vector<std::string> names, bool complete) {
  const bool last = t_.progress.all_steps_made() || OutOfTime();
  const int64_t every = t_.options.save.every_epochs;
  const bool by_epoch = every > 0 && state().epoch % every == 0;
  if (complete && (by_epoch || last)) names.push_back(format("epoch-{:04}", state().epoch));
  if (names.empty() && !last) return;
  t_.Save(names, listener_);
  agreed_.save = false;
  clock_.last_save = RunClock::Time::now();
}

}  // namespace mxtrain
