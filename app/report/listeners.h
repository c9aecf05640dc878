#pragma once
// Listeners that write files into the run folder.
#include <cstdio>
#include <string>

#include "mxtrain/train/events.h"

namespace mxtrain::report {

// metrics.csv: a row per epoch. Rows of epochs that a resumed run does again are replaced.
class CsvListener final : public TrainListener {
 public:
  explicit CsvListener(std::string path) : path_(std::move(path)) {}
  void OnEpoch(const EpochEvent& epoch) override;

 private:
  std::string path_;
};

// events.jsonl: an object per line with "event" and "time" (seconds since 1970). A resumed run appends.
class JsonlListener final : public TrainListener {
 public:
  explicit JsonlListener(const std::string& path);  // throws kFileSystem
  ~JsonlListener() override;
  void OnStart(const RunStart& start) override;
  void OnStep(const StepEvent& step) override;
  void OnEpoch(const EpochEvent& epoch) override;
  void OnSave(const SaveEvent& save) override;
  void OnWarning(const std::string& text) override;

 private:
  const std::string path_;
  std::FILE* file_;
};

// Passes every event on to several others; does not own them.
class Listeners final : public TrainListener {
 public:
  void Add(TrainListener* listener) { listeners_.push_back(listener); }
  void OnStart(const RunStart& e) override;
  void OnStep(const StepEvent& e) override;
  void OnEpoch(const EpochEvent& e) override;
  void OnSave(const SaveEvent& e) override;
  void OnWarning(const std::string& text) override;

 private:
  std::vector<TrainListener*> listeners_;
};

}  // namespace mxtrain::report
