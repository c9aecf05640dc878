#pragma once
// Which of a library's kernels is taken where it has several for one thing, as cuDNN for a convolution, and where the fastest was found by
// measuring. Kernels differ in the order of their sums, and so in the last bits: a checkpoint carries what was chosen (ModelInfo in
// train/checkpoint.h), so that whoever goes on from it computes as the run did before.
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "mxtrain/device/backend.h"

namespace mxtrain {

// Every method may be called from any thread.
class MXTRAIN_API KernelChoices {
 public:
  // Names of kernels by key. A key says, for people to read, all that the choice depends on: what is computed, shapes, types, layout, what
  // is allowed, the device and the version of the library. So one that was made elsewhere is simply not found.
  using Table = std::map<std::string, std::string>;
  // Seconds that a candidate takes, by its place in the list; nullopt where it does not run.
  using Stopwatch = std::function<std::optional<double>(size_t candidate)>;

  // Measuring is allowed while one of these lives. It must not outlive the choices, which may be null: then it does nothing.
  class MXTRAIN_API Measuring {
   public:
    explicit Measuring(KernelChoices* choices);
    ~Measuring();
    Measuring(const Measuring&) = delete;
    Measuring& operator=(const Measuring&) = delete;

   private:
    KernelChoices* const choices_;
  };

  // The place of the kernel to take out of the names of those that are possible, one at least; the first is the one that the library would
  // take by itself. The kept one, where it is possible; else, where measuring is allowed and `seconds_of` is given, the fastest (an earlier one
  // where the gain is below 5 %, the first where none could be measured), which is kept from then on; else the first. A key is measured once,
  // whoever asks at the same time.
  size_t Choose(const std::string& key, std::span<const std::string> candidates, const Stopwatch& seconds_of);

  Table kept() const;
  void Keep(const Table& table);  // replaces what is kept under the same keys

 private:
  std::optional<std::string> Find(const std::string& key) const;

  std::mutex measuring_;  // held while a key is measured
  mutable std::mutex mutex_;
  Table kept_;        // guarded by mutex_
  int allowing_ = 0;  // likewise; objects of Measuring
};

// A backend with libraries that have choices. They are its own: one table for all its devices, and as long as it lives.
class MXTRAIN_API ChoosingBackend : public Backend {
 public:
  KernelChoices& choices() { return choices_; }

 private:
  KernelChoices choices_;
};

// Null for a backend without choices, as the CPU's.
MXTRAIN_API KernelChoices* ChoicesOf(Backend& backend);

}  // namespace mxtrain
