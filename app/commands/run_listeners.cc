// SPDX-License-Identifier: Apache-2.0
#include "app/commands/run_listeners.h"

#include <initializer_list>
#include <optional>
#include <utility>

#include "app/commands/last_line.h"
#include "app/commands/train_report.h"
#include "app/console/showing.h"
#include "app/report/listeners.h"
#include "app/report/run_plots.h"

namespace mxtrain::commands {
namespace {

// Reports after an epoch if its validation read fewer examples than it should: the choice of the
// best epoch may then be wrong.
class UnreadListener final : public TrainListener {
 public:
  UnreadListener(const DataIter* validation, console::Console& console)
      : validation_(validation), console_(console) {}
  void OnEpoch(const EpochEvent&) override {
    const size_t unread = validation_ ? validation_->stats().bad.size() : 0;
    if (unread > std::exchange(told_, unread))
      TellUnread(*validation_, /*validation=*/true, console_);
  }

 private:
  const DataIter* const validation_;
  console::Console& console_;
  size_t told_ = 0;
};

// Keeps what a second signal says at the state of the last save, after which the result of the
// previous segment is none of this run.
class LastSaveListener final : public TrainListener {
 public:
  explicit LastSaveListener(const report::RunFolder& folder)
      : result_(folder.File("result.json")), again_(ContinueCommand(folder)) {
    Say("nothing was saved since the start");
  }
  void OnSave(const SaveEvent& save) override {
    std::filesystem::remove(result_);
    Say(format("the last save is of step {}", save.step));
  }

 private:
  void Say(const std::string& saved) const {
    SayWhenKilled(format("ended at once, without saving; {}; to continue: {}", saved, again_));
  }
  const std::string result_, again_;
};

}  // namespace

struct RunListeners::Impl {
  Impl(const report::RunFolder& folder, const std::string& examples, const DataIter* validation,
       std::shared_ptr<report::MonitorRows> rows, console::Console& on)
      : console(on),
        on_console(console, examples),
        csv(folder.File("metrics.csv")),
        jsonl(folder.File("events.jsonl")),
        tensorboard(folder.path()),
        plots(folder.path()),
        on_tensorboard(&tensorboard, "the TensorBoard files", console),
        on_plots(&plots, "curves", console),
        latest(folder),
        unread(validation, console),
        last_save(folder) {
    for (TrainListener* l : std::initializer_list<TrainListener*>{
             &on_console, &csv, &jsonl, &on_tensorboard, &on_plots, &latest, &unread, &last_save})
      all.Add(l);
    if (!rows) return;
    monitor.emplace(folder.path(), std::move(rows));
    on_monitor.emplace(&*monitor, "monitor.csv", console);
    all.Add(&*on_monitor);
  }
  ~Impl() {
    if (monitor) console::TryToShow(console, "monitor.csv", [&] { monitor->Finish(); });
  }

  console::Console& console;
  console::ConsoleListener on_console;
  report::CsvListener csv;
  report::JsonlListener jsonl;
  report::TensorBoardListener tensorboard;
  report::PlotListener plots;
  console::ShowingListener on_tensorboard, on_plots;
  report::LatestListener latest;
  UnreadListener unread;
  LastSaveListener last_save;
  std::optional<report::MonitorListener> monitor;
  std::optional<console::ShowingListener> on_monitor;
  report::Listeners all;
};

RunListeners::RunListeners(const report::RunFolder& folder, const std::string& examples,
                           const DataIter* validation, std::shared_ptr<report::MonitorRows> monitor,
                           console::Console& console)
    : impl_(std::make_unique<Impl>(folder, examples, validation, std::move(monitor), console)) {}
RunListeners::~RunListeners() = default;

TrainListener& RunListeners::all() {
  return impl_->all;
}

}  // namespace mxtrain::commands
