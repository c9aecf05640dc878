#pragma once
// One file that holds everything a run needs to go on, and everything a model needs to be used: the symbol, parameters, optimizer state, positions,
// class names, the input pipeline. A killed process leaves the old file or the new one, never a part; a damaged one is found by its checksum.
//
//   "MXTRAIN1" | u64 bytes of header | header (JSON) | u64 bytes of arrays | arrays (.params form) | u64 XXH3-64 of all before; little-endian
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/device/kernel_choices.h"
#include "mxtrain/kvstore/loss_scale.h"
#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain {

// An input or label of a net, per example.
struct InputInfo {
  std::string name;
  TShape shape;
  DType type = DType::kFloat32;
};

// What a model is beside its arrays.
struct ModelInfo {
  std::string symbol_json;
  std::vector<InputInfo> inputs, labels;
  std::vector<std::string> class_names;
  std::string pipeline;              // the input pipeline as text of the program's own; opaque here
  std::string config;                // the resolved configuration, as text
  std::string train_data, val_data;  // fingerprints (io/fingerprint.h); empty: not known
  int64_t batch_size = 0;
  KernelChoices::Table kernel_choices;  // that were measured for the run
};

// The best value of a metric so far, and the epoch (from 1) that had it.
struct BestValue {
  std::string metric;
  std::optional<double> value;
  int64_t epoch = 0;
};

// Where a run stands. Steps and epochs count what is done.
struct TrainState {
  int64_t step = 0, epoch = 0, step_in_epoch = 0;
  bool open = false;  // steps were made since an epoch, or the run, was last ended (evaluated, best checkpoint chosen)
  int64_t first_epoch = 0, first_step = 0;  // where the present stretch began: 0, or where a finished run was extended
  int64_t total_steps = 0;                  // that the run was to make when it was saved
  int64_t batches_per_step = 1;
  bool ended_early = false;                 // for want of improvement, or since its target was reached
  uint64_t random_step = 0;
  uint64_t seed = 0;
  int threads = 0;
  std::vector<std::string> metric_states;  // of the epoch that is under way
  std::string loss_state;
  std::string schedule_state, early_stop_state;
  int64_t examples_in_epoch = 0;
  int64_t average_updates = 0;              // that Checkpoint::averages have seen
  std::optional<LossScaleState> loss_scale;  // of training in float16
  std::vector<BestValue> best;              // the first is that of the checkpoint `best`
};

struct Checkpoint {
  ModelInfo model;
  TrainState state;
  std::map<std::string, NDArray> args, auxs, optimizer;  // loaded: plain, on the CPU
  std::map<std::string, NDArray> averages;               // of arguments and auxiliary states, by their names; a model to use takes these
};

// Waits for one array after the other; of those of a GPU, no more than a piece is on the host. Throws kFileSystem.
MXTRAIN_API void SaveCheckpoint(const std::string& path, const Checkpoint& checkpoint);
// Throws kFileSystem when the file cannot be read, kData when it is damaged, with what was wrong.
MXTRAIN_API Checkpoint LoadCheckpoint(Runtime& runtime, const std::string& path);
// What the model is, without its arrays. Reads the header alone, and so does not see other damage than in its length.
MXTRAIN_API ModelInfo PeekModel(const std::string& path);
// The state alone. Reads and checks the whole file, piece by piece.
MXTRAIN_API TrainState PeekState(const std::string& path);

// The files of a run's checkpoints/ folder: `last`, `previous` (the last before it), `best`, `epoch-0010`.
class MXTRAIN_API CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

  // Writes `last`, moving the one before to `previous`; `names` get the same bytes (hard links where the file system has them). Keeps the
  // newest `keep` files epoch-*, 0 for all. What killed processes left under temporary names goes (base/file.h).
  void Save(const Checkpoint& checkpoint, const std::vector<std::string>& names, int keep) const;
  // `last`; where that is missing or damaged the newest whole checkpoint of the folder, with a warning. Throws kData when there is none, and
  // whatever else keeps a file from being read (kFileSystem, kMemory): such a file may be whole.
  Checkpoint LoadLast(Runtime& runtime, std::vector<std::string>* warnings) const;
  // What the model of that checkpoint is, as PeekModel tells it.
  ModelInfo PeekLast() const;

 private:
  // The step and the path of the newest whole checkpoint but `last`. Throws as LoadLast.
  std::pair<int64_t, std::string> NewestBesideLast() const;

  std::string path_;
};

}  // namespace mxtrain
