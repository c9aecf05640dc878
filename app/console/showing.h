// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reports on a run (curves, TensorBoard's files, sheets of images, report.html) must not end it: a
// failure to write one is a warning, and the run continues.
#include <functional>
#include <string>

#include "app/console/console.h"
#include "mxtrain/train/events.h"

namespace mxtrain::console {

// Calls `show`; turns an error of the file system, or a damaged file that is shown, into a warning:
// "cannot write WHAT; ...". False on such an error. Other errors propagate.
bool TryToShow(Console& console, const std::string& what, const std::function<void()>& show);

// Forwards events to a reporting listener until its first failure. Does not own it.
class ShowingListener final : public TrainListener {
 public:
  ShowingListener(TrainListener* shown, std::string what, Console& console)
      : shown_(shown), what_(std::move(what)), console_(console) {}
  void OnStart(const RunStart& e) override {
    Try([&] { shown_->OnStart(e); });
  }
  void OnStep(const StepEvent& e) override {
    Try([&] { shown_->OnStep(e); });
  }
  void OnValidation(const ValidationEvent& e) override {
    Try([&] { shown_->OnValidation(e); });
  }
  void OnEpoch(const EpochEvent& e) override {
    Try([&] { shown_->OnEpoch(e); });
  }
  void OnSave(const SaveEvent& e) override {
    Try([&] { shown_->OnSave(e); });
  }
  void OnWarning(const std::string& text) override {
    Try([&] { shown_->OnWarning(text); });
  }

 private:
  void Try(const std::function<void()>& show) {
    goes_on_ = goes_on_ && TryToShow(console_, what_, show);
  }

  TrainListener* const shown_;
  const std::string what_;
  Console& console_;
  bool goes_on_ = true;
};

}  // namespace mxtrain::console
