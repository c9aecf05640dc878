// SPDX-License-Identifier: Apache-2.0
#pragma once
// Selects among several library kernels for one task, such as cuDNN's convolutions, by measuring.
// Kernels differ in the order of their sums and so in the last bits: a checkpoint stores the
// choices (ModelInfo in train/checkpoint.h), so that a continued run computes the same as before.
// Where nothing could be measured it stores that, and no kernel.
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "mxtrain/base/mutex.h"
#include "mxtrain/device/backend.h"

namespace mxtrain {

// Every method may be called from any thread.
class MXTRAIN_API KernelChoices {
 public:
  // Kernel names by key. A key describes, in readable text, everything that the choice depends on:
  // computation, shapes, types, layout, permitted math, device and library version. An entry made
  // elsewhere is simply not found.
  using Table = std::map<std::string, std::string>;
  // Stands in a table for the name of a kernel where no candidate could be measured: the run of
  // this table, also if it is continued, does without a choice and measures no more. Another run
  // measures for itself.
  static constexpr const char* kNotMeasured = "not measured";
  // Seconds that a candidate takes, by its index; nullopt if it does not run.
  using Stopwatch = std::function<std::optional<double>(size_t candidate)>;

  // Measuring is allowed while one of these lives. It must not outlive the choices, which may be
  // null: then it does nothing.
  class MXTRAIN_API Measuring {
   public:
    explicit Measuring(KernelChoices* choices);
    ~Measuring();
    Measuring(const Measuring&) = delete;
    Measuring& operator=(const Measuring&) = delete;

   private:
    KernelChoices* const choices_;
  };

  // Returns the index of the kernel to use among the names of the possible ones, at least one; the
  // first is the library's default. Uses the stored choice if it is possible. Otherwise, if
  // measuring is allowed and `seconds_of` is given, the fastest (an earlier one if the gain is
  // below 5 %), which is stored; if none could be measured, that is stored. Otherwise the first.
  // Each key is measured once, even if several threads ask at the same time.
  size_t Choose(const std::string& key, std::span<const std::string> candidates,
                const Stopwatch& seconds_of);

  Table kept() const;
  double measuring_seconds() const;  // that all measuring has taken
  void Keep(const Table& table);     // overwrites entries with the same keys

 private:
  std::optional<std::string> Find(const std::string& key) const MXTRAIN_EXCLUDES(mutex_);

  Mutex measuring_ MXTRAIN_ACQUIRED_BEFORE(mutex_);  // held while a key is measured
  mutable Mutex mutex_;
  Table kept_ MXTRAIN_GUARDED_BY(mutex_);
  int allowing_ MXTRAIN_GUARDED_BY(mutex_) = 0;  // live Measuring objects
  double measuring_seconds_ MXTRAIN_GUARDED_BY(mutex_) = 0;
};

// A backend with libraries that have choices: one table for all its devices, with the backend's
// lifetime.
class MXTRAIN_API ChoosingBackend : public Backend {
 public:
  KernelChoices& choices() { return choices_; }

 private:
  KernelChoices choices_;
};

// Null for a backend without choices, such as the CPU's.
MXTRAIN_API KernelChoices* ChoicesOf(Backend& backend);

// The chosen candidate, or the first one, if that is usable; otherwise the first that is; nullopt
// if none is. `choices` may be null: nothing is chosen then. usable(i) is called last for the
// candidate that is returned.
MXTRAIN_API std::optional<size_t> ChooseUsable(KernelChoices* choices, const std::string& key,
                                               std::span<const std::string> candidates,
                                               const KernelChoices::Stopwatch& seconds_of,
                                               const std::function<bool(size_t)>& usable);

}  // namespace mxtrain
