// SPDX-License-Identifier: Apache-2.0
// The loop itself: steps, epochs, evaluation, saves, progress.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain {
namespace {

using Time = std::chrono::steady_clock;
double SecondsSince(Time::time_point from) {
  return std::chrono::duration<double>(Time::now() - from).count();
}

constexpr int64_t kWarmupBatches = 20;  // excluded from the images per second of a run

bool Stops(const std::atomic<int>* stop) {
  return stop && *stop == 1;
}

int64_t BytesOf(const std::map<std::string, NDArray>& arrays) {
  int64_t bytes = 0;
  for (const auto& [name, array] : arrays) bytes += array.spec().Bytes();
  return bytes;
}

}  // namespace

// Times of one call of Run. Only training counts: the clock is stopped during evaluation and saves.
struct Trainer::Clock {
  Time::time_point start = Time::now(), last_report = start, last_save = start;
  // Training time since the last report, across ends of epochs and saves.
  double report_seconds = 0, report_wait = 0;
  int64_t report_images = 0;

  // The running segment of training time.
  Time::time_point segment = start;
  int64_t batches = 0, segment_images = 0;
  double counted_seconds = 0, counted_wait = 0, segment_wait = 0, epoch_seconds = 0;
  int64_t counted_images = 0, epoch_images = 0;

  // `waited`: for data, so far (data_wait.h).
  void Resume(double waited) {
    segment = Time::now();
    segment_wait = waited;
  }
  // Adds the segment that ends now; call after waiting for the engine.
  void Pause(double waited) {
    const double seconds = SecondsSince(segment), wait = waited - segment_wait;
    epoch_seconds += seconds;
    epoch_images += segment_images;
    report_seconds += seconds;
    report_wait += wait;
    report_images += segment_images;
    if (batches > kWarmupBatches) {
      counted_seconds += seconds;
      counted_wait += wait;
      counted_images += segment_images;
    }
    segment_images = 0;
    Resume(waited);
  }
  void BeginReport() {
    last_report = Time::now();
    report_seconds = report_wait = 0;
    report_images = 0;
  }
  double ImagesPerSecond() const {
    return counted_seconds > 0 ? static_cast<double>(counted_images) / counted_seconds : 0;
  }
  double WaitShare() const {
    return counted_seconds > 0 ? std::clamp(counted_wait / counted_seconds, 0.0, 1.0) : 0;
  }
};

RunStart Trainer::Describe() const {
  RunStart s;
  for (const auto& [name, array] : executors_[0]->args()) s.parameters += array.shape().Size();
  for (const auto& [name, array] : executors_[0]->grads())
    s.learning_parameters += array.shape().Size();
  s.train_examples = train_.examples();
  s.val_examples = val_ ? val_->examples() : 0;
  s.steps_per_epoch = steps_per_epoch_;
  s.total_steps = total_steps_;
  s.first_step = state_.step;
  for (const auto& executor : executors_) {
    s.arena_bytes += executor->arena_bytes();
    s.parameter_bytes += BytesOf(executor->args()) + BytesOf(executor->auxs());
    s.gradient_bytes += BytesOf(executor->grads());
  }
  s.optimizer_bytes = updater_->num_devices() * BytesOf(updater_->States());
  if (average_) s.average_bytes = BytesOf(average_->Arrays());
  s.rescale_grad = rescale_grad_;
  s.rescale_reason = rescale_reason_;
  return s;
}

void Trainer::Save(const std::vector<std::string>& names, TrainListener& listener) {
  if (options_.checkpoint_folder.empty()) return;
  const auto begin = Time::now();
  runtime_.engine().WaitForAll();
  const CheckpointFolder folder(options_.checkpoint_folder);
  folder.Save(Snapshot(), names, options_.save.keep);
  saved_step_ = state_.step;
  listener.OnSave({folder.File("last"), state_.epoch, state_.step, SecondsSince(begin)});
}

bool Trainer::OutOfTime(const Clock& clock) const {
  return options_.time_limit_seconds > 0 &&
         SecondsSince(clock.start) >= options_.time_limit_seconds;
}

bool Trainer::ReachesTarget(std::optional<double> value) const {
  const std::optional<double>& target = options_.early_stop.target;
  return target && value && (best_.HigherIsBetter() ? *value >= *target : *value <= *target);
}

TrainResult Trainer::Run(TrainListener& listener, std::atomic<int>* stop) {
  result_ = {};
  Clock clock;
  try {
    Summarize(RunEpochs(listener, stop, &clock), clock);
    return result_;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kDiverged) throw;
    Summarize(RunEnd::kDiverged, clock);
    if (!diverged_) throw;
    result_.steps = diverged_->step();  // later ones may have been started
    throw DivergedError(*diverged_);
  }
}

void Trainer::Rehearse() {
  DataBatch batch;
  train_.Reset(state_.epoch);
  do {
    if (!train_.Next(&batch)) break;
    Step(batch);
  } while (summed_batches_ > 0);
  runtime_.engine().WaitForAll();
  if (!evaluation_) return;
  bool seen = false;
  evaluation_->Run({}, [&seen] { return std::exchange(seen, true); });
}

RunEnd Trainer::RunEpochs(TrainListener& listener, std::atomic<int>* stop, Clock* clock) {
  listener.OnStart(Describe());
  clock->Resume(data_wait_.seconds());
  while (!finished() && !Stops(stop) && !OutOfTime(*clock)) {
    TrainEpoch(listener, stop, clock);
    if (!state_.open || (Stops(stop) && state_.step_in_epoch < steps_per_epoch_)) break;
    EndEpoch(listener, stop, clock);
  }
  const bool complete = finished() && !Stops(stop);
  if (complete && state_.step == 0)
    Save({"best"}, listener);  // a run without steps: its result is the initial state
  if (!complete && saved_step_ != state_.step) Save({}, listener);
  runtime_.engine().WaitForAll();
  if (Stops(stop)) return RunEnd::kStopped;
  if (complete && ReachesTarget(best_.first().value)) return RunEnd::kTarget;
  if (state_.ended_early) return RunEnd::kNoImprovement;
  return complete ? RunEnd::kComplete : RunEnd::kTimeLimit;
}

void Trainer::Summarize(RunEnd end, const Clock& clock) {
  result_.end = end;
  result_.epochs = state_.epoch;
  result_.steps = state_.step;
  result_.total_steps = total_steps_;
  const int64_t position = Position();
  result_.lr = LearningRate(std::max<int64_t>(position - 1, 0));
  result_.last_lr = LearningRate(std::max<int64_t>(position + total_steps_ - state_.step - 1, 0));
  result_.best = best_.values();
  result_.higher_is_better = best_.HigherIsBetter();
  result_.images_per_second = clock.ImagesPerSecond();
  result_.wait_share = clock.WaitShare();
}

void Trainer::Step(const DataBatch& batch) {
  // At most two batches in flight; an error of the one before the last is thrown here.
  runtime_.engine().WaitForVar(batch_marks_[static_cast<size_t>(batches_ % 2)]);
  data_wait_.Pushed();
  const auto begin = Time::now();
  SumGradients(batch);
  const bool whole = ++summed_batches_ == options_.grad_accum;
  if (whole) UpdateParameters();
  MarkEnd(whole);
  CollectBatch(batch);
  push_seconds_ += SecondsSince(begin);
  ++batches_;
  state_.examples_in_epoch += batch.count;
  if (!whole) return;
  summed_batches_ = 0;
  ++state_.step;
  ++state_.step_in_epoch;
  state_.open = true;
}

// Steps until the end of the epoch or of the run, or until `stop`.
void Trainer::TrainEpoch(TrainListener& listener, std::atomic<int>* stop, Clock* clock) {
  train_.Reset(state_.epoch, state_.step_in_epoch * options_.grad_accum);
  reported_ = scores_.loss().sums();
  DataBatch batch;
  const auto goes_on = [&] {
    if (summed_batches_ > 0) return true;  // complete the step
    return state_.step < total_steps_ && state_.step_in_epoch < steps_per_epoch_ && !Stops(stop) &&
           !OutOfTime(*clock);
  };
  while (goes_on() && data_wait_.Next(train_, &batch)) {
    Step(batch);
    clock->segment_images += batch.count;
    if (++clock->batches == kWarmupBatches) {
      runtime_.engine().WaitForAll();
      clock->Pause(data_wait_.seconds());
    }
    if (summed_batches_ > 0) continue;
    if (ReportIsDue(*clock)) ReportStep(listener, clock);
    SaveWhereDue(listener, stop, clock);
  }
  runtime_.engine().WaitForAll();
  clock->Pause(data_wait_.seconds());
}

bool Trainer::ReportIsDue(const Clock& clock) const {
  if (options_.report_steps > 0) return state_.step % options_.report_steps == 0;
  return SecondsSince(clock.last_report) >= options_.report_seconds;
}

void Trainer::ReportStep(TrainListener& listener, Clock* clock) {
  StepEvent e;
  e.epoch = state_.epoch;
  e.step = state_.step;
  e.step_in_epoch = state_.step_in_epoch;
  e.steps_per_epoch = steps_per_epoch_;
  e.total_steps = total_steps_;
  e.lr = LearningRate(Position() - 1);
  runtime_.engine().WaitForVar(sums_);
  LookAtLossScale(listener);
  e.loss = scores_.loss().Total();
  e.recent_loss = scores_.loss().TotalSince(reported_);
  reported_ = scores_.loss().sums();
  clock->Pause(data_wait_.seconds());
  e.images_per_second = static_cast<double>(clock->report_images) / clock->report_seconds;
  e.wait_share = std::clamp(clock->report_wait / clock->report_seconds, 0.0, 1.0);
  e.seconds = SecondsSince(clock->start);
  if (e.images_per_second > 0)
    e.seconds_left =
        static_cast<double>((total_steps_ - state_.step) * ExamplesPerStep()) / e.images_per_second;
  if (options_.time_limit_seconds > 0)
    e.seconds_left = std::min(e.seconds_left, options_.time_limit_seconds - e.seconds);
  listener.OnStep(e);
  if (clock->batches > kWarmupBatches) {
    WarnOfTimeLimit(
        listener, e.seconds,
        static_cast<double>(clock->batches) / static_cast<double>(options_.grad_accum) / e.seconds);
  }
  clock->BeginReport();
}

// Warns once, after a twentieth of the time, if the rest will not suffice for a schedule that
// decreases until the last step. The schedule itself does not depend on time, since runs would no
// longer be reproducible (docs/decisions/0056-a-time-limit-does-not-bend-the-schedule.md).
void Trainer::WarnOfTimeLimit(TrainListener& listener, double seconds, double steps_per_second) {
  const double limit = options_.time_limit_seconds;
  if (limit == 0 || warned_of_limit_ || seconds < limit / 20 || !schedule_->SpansRun()) return;
  warned_of_limit_ = true;
  const auto steps =
      static_cast<int64_t>(std::max(limit - seconds, 0.0) * steps_per_second);  // still possible
  if (static_cast<double>(steps) > 0.95 * static_cast<double>(total_steps_ - state_.step)) return;
  const int64_t epochs = (Position() + steps) / steps_per_epoch_;
  listener.OnWarning(
      format("at this speed train.time_limit ends the run after about {} of {} steps, before the "
             "schedule '{}' is complete; {}",
             state_.step + steps, total_steps_, options_.lr_schedule.name,
             epochs > 0 ? format("train.epochs={} fits into the time", epochs)
                        : "an epoch takes longer than that"));
}

// Saves by steps, by time and on request.
void Trainer::SaveWhereDue(TrainListener& listener, std::atomic<int>* stop, Clock* clock) {
  const SavePolicy& save = options_.save;
  const bool by_steps = save.every_steps > 0 && state_.step % save.every_steps == 0;
  const bool by_time =
      save.every_seconds > 0 && SecondsSince(clock->last_save) >= save.every_seconds;
  const bool by_request = stop && *stop == 2;
  if (!by_steps && !by_time && !by_request) return;
  int request = 2;
  if (by_request) stop->compare_exchange_strong(request, 0);  // keep a stop that arrived meanwhile
  runtime_.engine().WaitForAll();
  clock->Pause(data_wait_.seconds());
  Save({}, listener);
  clock->last_save = Time::now();
  clock->Resume(data_wait_.seconds());
}

// Reports changes of the loss scale; called where the host waits anyway.
void Trainer::LookAtLossScale(TrainListener& listener) {
  if (!loss_scale_) return;
  const LossScaleState now = loss_scale_->Read();
  if (now.at_lowest > 0) {
    throw DivergedError(format("gradients overflow in float16 at step {} or shortly before, "
                               "although the loss scale is at its minimum; lower the "
                               "learning rate, clip gradients, or train with train.amp: bf16",
                               state_.step),
                        state_.step, {});
  }
  if (now.scale < seen_loss_scale_.scale) {
    listener.OnWarning(format(
        "step {}: gradients overflowed float16; {} step{} skipped so far, the loss is scaled by "
        "{:g} from now on",
        state_.step, now.steps_skipped, now.steps_skipped == 1 ? " was" : "s were", now.scale));
  }
  seen_loss_scale_ = now;
}

// Of the current epoch.
std::vector<std::pair<double, double>> Trainer::RatesOfEpoch() const {
  constexpr int64_t kMost = 32;
  const int64_t steps = state_.step_in_epoch, count = std::min(steps, kMost);
  std::vector<std::pair<double, double>> rates;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t step = count > 1 ? k * (steps - 1) / (count - 1) : 0;
    rates.emplace_back(static_cast<double>(state_.epoch) +
                           static_cast<double>(step) / static_cast<double>(steps_per_epoch_),
                       LearningRate(Position() - steps + step));
  }
  return rates;
}

void Trainer::EndEpoch(TrainListener& listener, std::atomic<int>* stop, Clock* clock) {
  LookAtLossScale(listener);
  EpochEvent e;
  e.step = state_.step;
  e.lr = LearningRate(std::max<int64_t>(Position() - 1, 0));
  e.rates = RatesOfEpoch();
  e.seconds = clock->epoch_seconds;
  e.images_per_second = clock->epoch_seconds > 0
                            ? static_cast<double>(clock->epoch_images) / clock->epoch_seconds
                            : 0;
  clock->epoch_seconds = 0;
  clock->epoch_images = 0;
  e.train = scores_.Values();
  if (evaluation_) {
    const WeightAverage::InUse averages(average_.get());
    e.val = evaluation_->Run({}, [stop] { return Stops(stop); });
  }
  if (Stops(stop) && evaluation_)
    return;  // interrupted: on resume the epoch is ended again, completely
  result_.last = evaluation_ ? e.val : e.train;

  // A run ended inside an epoch by max_steps or the time limit keeps its position, so a longer run
  // can continue from it.
  const bool whole = state_.step_in_epoch >= steps_per_epoch_;
  e.epoch = state_.epoch + 1;
  state_.open = false;
  if (whole) {
    ++state_.epoch;
    state_.step_in_epoch = 0;
    state_.examples_in_epoch = 0;
    scores_.Reset();
    if (const std::optional<double> value = FindValue(result_.last, best_.first().metric)) {
      schedule_->EndEpoch(*value, best_.HigherIsBetter());
      const bool exhausted = early_stop_ && early_stop_->Exhausted(*value, best_.HigherIsBetter());
      state_.ended_early = (exhausted || ReachesTarget(value)) && state_.step < total_steps_;
    }
  }
  std::vector<std::string> names = best_.Update(e.epoch, result_.last);
  e.best = !names.empty() && names[0] == "best";
  if (loss_scale_) {
    e.loss_scale = seen_loss_scale_.scale;
    e.steps_skipped = seen_loss_scale_.steps_skipped;
  }
  listener.OnEpoch(e);

  const bool last = state_.step >= total_steps_ || state_.ended_early || OutOfTime(*clock);
  const bool by_epoch =
      options_.save.every_epochs > 0 && state_.epoch % options_.save.every_epochs == 0;
  if (whole && (by_epoch || last)) names.push_back(format("epoch-{:04}", state_.epoch));
  if (!names.empty() || last) {
    Save(names, listener);
    clock->last_save = Time::now();
  }
  clock->Resume(data_wait_.seconds());
}

}  // namespace mxtrain
