// SPDX-License-Identifier: Apache-2.0
// mxtrain replay BUNDLE
#include "app/commands/replay.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "app/commands/command_list.h"
#include "app/commands/pretrained.h"
#include "app/report/output.h"
#include "app/session/session.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/read_json.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

struct Range {
  int64_t nans = 0, infinities = 0;
  double largest = 0;  // of the finite values
};

template <typename T>
Range RangeOf(const T* values, int64_t count) {
  Range s;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(values[i]);
    if (std::isnan(value)) {
      ++s.nans;
    } else if (std::isinf(value)) {
      ++s.infinities;
    } else {
      s.largest = std::max(s.largest, static_cast<double>(std::abs(value)));
    }
  }
  return s;
}

Range RangeOf(const TBlob& value) {
  const int64_t count = value.shape.Size();
  switch (value.type) {
    case DType::kFloat32:
      return RangeOf(value.dptr<float>(), count);
    case DType::kBfloat16:
      return RangeOf(value.dptr<bfloat16>(), count);
    case DType::kFloat16:
      return RangeOf(value.dptr<float16>(), count);
    default:
      return {};  // numbers that are always finite
  }
}

// Inspects the results of a step, tensor by tensor, until one is not finite.
class Watch {
 public:
  void See(const std::string& name, const TBlob& value) {
    if (!found_.tensor.empty()) return;
    const Range s = RangeOf(value);
    if (s.nans + s.infinities > 0) {
      found_.tensor = name;
      found_.nans = s.nans, found_.infinities = s.infinities, found_.size = value.shape.Size();
    } else {
      found_.largest_before = s.largest;
    }
  }
  NonFinite found(int64_t step) const {
    NonFinite result = found_;
    result.step = step;
    return result;
  }

 private:
  NonFinite found_;  // written by the computing thread, read after the run
};

// Starts watching after the step before the failing one.
class WatchStep final : public TrainListener {
 public:
  WatchStep(Trainer* trainer, Watch* watch, int64_t step)
      : trainer_(trainer), watch_(watch), step_(step) {}
  void OnStart(const RunStart& start) override {
    if (start.first_step + 1 == step_) Begin();
  }
  void OnStep(const StepEvent& e) override {
    if (e.step + 1 == step_) Begin();
  }
  // Another executor, if frozen layers begin to learn there.
  void OnEpoch(const EpochEvent& e) override {
    if (e.step + 1 == step_) Begin();
  }
  bool begun() const { return begun_; }

 private:
  void Begin() {
    begun_ = true;
    trainer_->executor().SetMonitor(
        [watch = watch_](const std::string& name, const TBlob& value) { watch->See(name, value); });
  }
  Trainer* const trainer_;
  Watch* const watch_;
  const int64_t step_;
  bool begun_ = false;
};

Json ReadBundle(const std::string& bundle) {
  const std::string file = bundle + "/bundle.json";
  if (!fs::exists(file))
    Throw(ErrorKind::kData,
          "{} is not a bundle of a diverged run (RUN/diverged-STEP): it contains no bundle.json",
          bundle);
  const Json json = ReadJsonOf<Json>(file, ReadFile(file));
  if (!json.is_object() || !json.value("step", Json()).is_number_integer() ||
      !json.value("threads", Json()).is_number_integer()) {
    Throw(ErrorKind::kData,
          "{} is not a bundle of a diverged run: it does not contain step and threads", file);
  }
  constexpr int64_t kMostThreads = 4096;
  if (json["threads"] < 1 || json["threads"] > kMostThreads)
    Throw(ErrorKind::kData, "{}: threads = {} is not between 1 and {}", file,
          json["threads"].dump(), kMostThreads);
  return json;
}

class ReplayCommand final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("replay",
                                   "repeat the failing step of a diverged run and report where the "
                                   "first non-finite value arose");
    arguments.Option("bundle", &bundle_, "folder RUN/diverged-STEP").Required().Takes("BUNDLE");
    arguments.Examples("  mxtrain replay runs/photos-0001/diverged-000123");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    CatchSignals();
    const NonFinite found = Replay(bundle_, flags, console);
    if (StopFlag() == 1) return 128 + StopSignal();
    if (flags.json) {
      std::cout << report::JsonText({{"step", found.step},
                                     {"tensor", found.tensor},
                                     {"nans", found.nans},
                                     {"infinities", found.infinities},
                                     {"size", found.size},
                                     {"largest_before", found.largest_before}})
                << std::endl;
    } else {
      std::cout << found.Text() << std::endl;
    }
    return 0;
  }

 private:
  std::string bundle_;
};

}  // namespace

std::string WriteBundle(const report::RunFolder& run, const DivergedError& error, int threads) {
  const std::string name = format("diverged-{:06}", error.step());
  const fs::path folder = run.File(name);
  MakeOwnFolder(folder.string());
  for (const char* file : {"checkpoint", "config.yaml"}) fs::remove(folder / file);
  fs::copy_file(run.File("config.yaml"), folder / "config.yaml");
  const std::string last = CheckpointFolder(run.checkpoints()).File("last");
  if (fs::exists(last)) fs::copy_file(last, folder / "checkpoint");
  std::string batch;
  for (const std::string& example : error.examples()) batch += example + "\n";
  WriteFileAtomically((folder / "batch.txt").string(), batch);
  const Json json = {{"step", error.step()},
                     {"threads", threads},
                     {"message", error.what()},
                     {"examples", error.examples()}};
  WriteFileAtomically((folder / "bundle.json").string(), json.dump(2) + "\n");
  return folder.string();
}

std::string NonFinite::Text() const {
  if (tensor.empty()) return format("step {}: every value was finite", step);
  const std::string count = nans > 0 && infinities > 0
                                ? format("{} NaN and {} infinite", nans, infinities)
                            : nans > 0 ? format("{} NaN", nans)
                                       : format("{} infinite", infinities);
  return format(
      "step {}: the first non-finite values are in {}: {} of {} values; the tensor computed before "
      "it reaches {:.3g}",
      step, tensor, count, size, largest_before);
}

NonFinite Replay(const std::string& bundle, const CommonFlags& flags, console::Console& console) {
  const Json json = ReadBundle(bundle);
  const int64_t step = json["step"];
  CommonFlags same = flags;
  // Rounding depends on the threads of a team. One team, so that the tensors are seen in order.
  same.threads = json["threads"];
  same.cpu_workers = 1;
  ConfigArguments arguments;
  arguments.file = bundle + "/config.yaml";
  arguments.trusts_plugins = false;
  session::Session session(arguments, same, console.log());
  session.BuildNet();
  auto train = session.TrainIter();
  auto val = session.ValIter();
  TrainOptions options = session.MakeTrainOptions();
  options.save = {0, 0, 0, 1};
  options.report_steps = 1;
  const std::string checkpoint = bundle + "/checkpoint";
  const bool resumes = fs::exists(checkpoint);
  if (resumes) options.model.kernel_choices = PeekModel(checkpoint).kernel_choices;
  Watch watch;
  Trainer trainer(session.runtime(), options, *train, val.get());
  if (resumes) {
    TakeBase(session, &trainer, console, /*offline=*/true);
    const Checkpoint last = LoadCheckpoint(session.runtime(), checkpoint);
    // A step that follows the last one of a run is of its extension.
    trainer.Resume(last, /*extend=*/last.state.all_steps_made());
  } else {
    // A bundle may be of somebody else: what it names is not downloaded.
    TakePretrained(session, &trainer, console, /*offline=*/true);
  }
  WatchStep listener(&trainer, &watch, step);
  try {
    trainer.Run(listener, &StopFlag());
  } catch (const DivergedError& e) {
    return watch.found(e.step());
  }
  if (StopFlag() != 1 && !listener.begun())
    Throw(ErrorKind::kData,
          "{} has no step {}: its checkpoint and its configuration are of two runs", bundle, step);
  if (StopFlag() != 1)
    console.Message(LogLevel::kWarning,
                    "every loss was finite this time: data, plug-ins or the machine differ from "
                    "those of the run");
  return watch.found(step);
}

MXTRAIN_COMMAND(replay, list) {
  list.Add(HelpGroup::kRuns, 40, std::make_unique<ReplayCommand>());
}

}  // namespace mxtrain::commands
