// SPDX-License-Identifier: Apache-2.0
#include "app/report/listeners.h"

#include <chrono>
#include <filesystem>

#include "app/report/metrics_table.h"
#include "app/report/output.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::report {
namespace {

Json ToJson(const NamedValues& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object;
}

// Throws kFileSystem: a full disk ends the run.
void Emit(FileAppender* file, const char* event, const Json& fields) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  Json line = {{"event", event}, {"time", now}};
  line.update(fields);
  file->Append(JsonText(line) + "\n");
}

}  // namespace

void CsvListener::OnEpoch(const EpochEvent& e) {
  AppendMetrics(path_, e);
}

JsonlListener::JsonlListener(const std::string& path) : file_(path) {}

void JsonlListener::OnStart(const RunStart& s) {
  Emit(&file_, "start",
       {{"schema", kEventsSchema},
        {"parameters", s.parameters},
        {"learning_parameters", s.learning_parameters},
        {"train_examples", s.train_examples},
        {"val_examples", s.val_examples},
        {"steps_per_epoch", s.steps_per_epoch},
        {"total_steps", s.total_steps},
        {"first_step", s.first_step},
        {"arena_bytes", s.arena_bytes},
        {"parameter_bytes", s.parameter_bytes},
        {"gradient_bytes", s.gradient_bytes},
        {"optimizer_bytes", s.optimizer_bytes},
        {"average_bytes", s.average_bytes}});
}
void JsonlListener::OnStep(const StepEvent& e) {
  Emit(&file_, "step",
       {{"epoch", e.epoch},
        {"step", e.step},
        {"loss", e.loss},
        {"recent_loss", e.recent_loss},
        {"lr", e.lr},
        {"images_per_second", e.images_per_second},
        {"wait_share", e.wait_share}});
}
void JsonlListener::OnEpoch(const EpochEvent& e) {
  Json fields = {{"epoch", e.epoch},
                 {"step", e.step},
                 {"lr", e.lr},
                 {"seconds", e.seconds},
                 {"images_per_second", e.images_per_second},
                 {"train", ToJson(e.train)},
                 {"val", ToJson(e.val)},
                 {"best", e.best},
                 {"rates", e.rates}};
  if (e.loss_scale > 0)
    fields.update({{"loss_scale", e.loss_scale}, {"steps_left_out", e.steps_skipped}});
  if (!e.waiting.empty()) fields["waiting_seconds"] = e.waiting;  // by rank
  if (!e.staleness.empty()) fields["staleness"] = e.staleness;    // updates, by staleness
  Emit(&file_, "epoch", fields);
}
void JsonlListener::OnSave(const SaveEvent& e) {
  Emit(&file_, "save",
       {{"file", e.file}, {"epoch", e.epoch}, {"step", e.step}, {"seconds", e.seconds}});
}
void JsonlListener::OnWarning(const std::string& text) {
  Emit(&file_, "warning", {{"text", text}});
}

void TensorBoardListener::OnStart(const RunStart& s) {
  file_.emplace(run_folder_ + "/tb", s.first_step);
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(run_folder_ + "/samples", missing)) {
    if (entry.path().extension() != ".png") continue;  // incomplete file of a killed process
    if (s.first_step == 0)
      file_->AddPng("samples/" + entry.path().stem().string(), 0, ReadFile(entry.path()));
  }
  file_->Flush();
}
void TensorBoardListener::OnStep(const StepEvent& e) {
  file_->AddScalar("step/loss", e.step, e.recent_loss);
  file_->AddScalar("step/learning_rate", e.step, e.lr);
  file_->AddScalar("step/images_per_second", e.step, e.images_per_second);
  file_->AddScalar("step/wait_share", e.step, e.wait_share);
}
void TensorBoardListener::OnEpoch(const EpochEvent& e) {
  for (const auto& [name, value] : e.train) file_->AddScalar("train/" + name, e.step, value);
  for (const auto& [name, value] : e.val) file_->AddScalar("val/" + name, e.step, value);
  file_->AddScalar("epoch/learning_rate", e.step, e.lr);
  file_->AddScalar("epoch/number", e.step, static_cast<double>(e.epoch));
  file_->Flush();
}

void Listeners::OnStart(const RunStart& e) {
  for (TrainListener* l : listeners_) l->OnStart(e);
}
void Listeners::OnStep(const StepEvent& e) {
  for (TrainListener* l : listeners_) l->OnStep(e);
}
void Listeners::OnValidation(const ValidationEvent& e) {
  for (TrainListener* l : listeners_) l->OnValidation(e);
}
void Listeners::OnEpoch(const EpochEvent& e) {
  for (TrainListener* l : listeners_) l->OnEpoch(e);
}
void Listeners::OnSave(const SaveEvent& e) {
  for (TrainListener* l : listeners_) l->OnSave(e);
}
void Listeners::OnWarning(const std::string& text) {
  for (TrainListener* l : listeners_) l->OnWarning(text);
}

}  // namespace mxtrain::report
