// SPDX-License-Identifier: Apache-2.0
#pragma once
// One file with everything needed to continue a run or to use the model: symbol, parameters,
// optimizer state, positions, class names, input pipeline. Written atomically: a killed process
// leaves the old file or the new one. Damage is detected by a checksum.
//
//   "MXTRAIN1" | u64 bytes of header | header (JSON)
//   | u64 bytes of arrays | arrays (.params format) | u64 XXH3-64 of all before
//
// Numbers are little-endian.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/device/kernel_choices.h"
#include "mxtrain/kvstore/loss_scale.h"
#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/symbol/symbol.h"
#include "mxtrain/train/lora.h"

namespace mxtrain {

// An input or label of a net, per example.
struct InputInfo {
  std::string name;
  TShape shape;
  DType type = DType::kFloat32;
};

// A model without its arrays.
struct ModelInfo {
  std::string symbol_json;
  std::vector<InputInfo> inputs, labels;
  std::vector<std::string> class_names;
  std::string pipeline;  // the input pipeline as text of the program; opaque here
  std::string config;    // the resolved configuration, as text; empty: not from a run
  std::string modes;     // of an exported model: the compute modes, as text of the program
  std::string train_data, val_data;  // fingerprints (io/fingerprint.h); empty: unknown
  int64_t batch_size = 0;
  KernelChoices::Table kernel_choices;  // measured for the run
  // Of a checkpoint that holds only what was added to a base (train/lora.h); its symbol is without
  // the factors.
  std::optional<LoraInfo> lora;
  std::vector<std::string> carry;  // layers whose states go on from batch to batch (train/carry.h)
};

// The best value of a metric so far, and the epoch (from 1) that had it: of epochs with the same
// value the one of the lowest loss.
struct BestValue {
  std::string metric;
  std::optional<double> value;
  int64_t epoch = 0;
  std::optional<double> loss = std::nullopt;  // of that epoch; nothing: unknown
};

// The position of a run. Steps and epochs count completed ones.
struct TrainState {
  int64_t step = 0, epoch = 0, step_in_epoch = 0;
  // Steps were made since the last end of an epoch or run (evaluation, choice of the best
  // checkpoint).
  bool open = false;
  // Start of the current segment: 0, or where a finished run was extended.
  int64_t first_epoch = 0, first_step = 0;
  // Where parameters that were frozen before began to learn; 0: nowhere yet.
  int64_t unfrozen_step = 0;
  int64_t total_steps = 0;  // planned for the run when it was saved
  int64_t batches_per_step = 1;
  bool ended_early = false;  // without improvement, or having reached its target
  uint64_t random_step = 0;
  uint64_t random_calls = 0;  // calls on arrays that drew random numbers
  uint64_t seed = 0;
  int threads = 0;
  std::vector<std::string> metric_states;  // of the current epoch
  std::string loss_state;
  std::string schedule_state, early_stop_state;
  int64_t examples_in_epoch = 0;
  int64_t average_updates = 0;               // contained in Checkpoint::averages
  std::optional<LossScaleState> loss_scale;  // when training in float16
  std::vector<BestValue> best;               // the first belongs to the checkpoint `best`

  // Of the plan that it was saved with.
  bool all_steps_made() const { return step >= total_steps || ended_early; }
};

struct Checkpoint {
  ModelInfo model;
  TrainState state;
  std::map<std::string, NDArray> args, auxs, optimizer;  // loaded: plain, on the CPU
  // Of arguments and auxiliary states, by name; used by LoadModel.
  std::map<std::string, NDArray> averages;
  // What the compression of gradients between ranks has not sent yet, by "RANK/NAME".
  std::map<std::string, NDArray> residuals;
  // The states that the next batch begins with, by "WORKER/NAME".
  std::map<std::string, NDArray> carried;
};

// Waits for one array after another; GPU arrays are copied to the host piece by piece. Throws
// kFileSystem.
MXTRAIN_API void SaveCheckpoint(const std::string& path, const Checkpoint& checkpoint);
// Throws kFileSystem if the file cannot be read, kData with the reason if it is damaged.
MXTRAIN_API Checkpoint LoadCheckpoint(Runtime& runtime, const std::string& path);
// Whether this is a file that begins as one.
MXTRAIN_API bool IsCheckpoint(const std::string& path);
// The model without its arrays. Reads only the header; beyond it, only a wrong length is detected.
MXTRAIN_API ModelInfo PeekModel(const std::string& path);
// The state only. Reads and checks the whole file, piece by piece.
MXTRAIN_API TrainState PeekState(const std::string& path);

// The files of a run's checkpoints/ folder: `last`, `previous` (the last before it), `best`,
// `epoch-0010`.
class MXTRAIN_API CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

  // Writes `last`, moving the old one to `previous`; `names` get the same bytes (hard links if
  // supported). Keeps the newest `keep` files epoch-*, 0 for all. Removes temporary files of killed
  // processes (base/file.h).
  void Save(const Checkpoint& checkpoint, const std::vector<std::string>& names, int keep) const;
  // Loads `last`; if it is missing or damaged, the newest intact checkpoint of the folder, with a
  // warning. Throws kData if there is none. Other errors (kFileSystem, kMemory) are not skipped:
  // the file may be intact.
  Checkpoint LoadLast(Runtime& runtime, std::vector<std::string>* warnings) const;
  // PeekModel and PeekState of that checkpoint.
  ModelInfo PeekLast() const;
  TrainState PeekLastState() const;

 private:
  // Step and path of the newest intact checkpoint other than `last`. Throws like LoadLast.
  std::pair<int64_t, std::string> NewestBesideLast() const;
  template <typename Peek>  // of `last`, or the newest of the others
  auto PeekedBy(const Peek& peek) const;

  std::string path_;
};

}  // namespace mxtrain
