// SPDX-License-Identifier: Apache-2.0
#pragma once
// Features that runs share (FeatureOptions::folder): a file for each key, which holds the features
// of examples by what their records hold. The key says all that features depend on beside the
// record; runs with equal keys have equal features, bit for bit, of equal records.
//
// File: magic, length of the header (uint64), header (JSON: key, numbers, examples,
// any_place), the identities (uint64 each), the numbers (float32, examples * numbers), and the
// XXH3-64 of identities and numbers. Little-endian, as all of the program's files are.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/base/file.h"
#include "mxtrain/base/log.h"
#include "mxtrain/io/source.h"
#include "mxtrain/train/feature_cut.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain {

// All that features depend on beside the record: the layers, the values of their parameters, how
// examples are prepared and what computes: the processor or GPU with its libraries, and what
// FeatureOptions::preparation says of the program. `examples`: an iterator of these. Waits for the
// arrays.
MXTRAIN_API std::string FeatureKey(Runtime& runtime, const TrainOptions& options,
                                   const FeatureCut& cut,
                                   const std::map<std::string, NDArray>& args,
                                   const std::map<std::string, NDArray>& auxs,
                                   const DataIter& examples, bool validation);

// Of each record a number that is equal for equal contents: XXH3-64 of the bytes of its fields,
// which are read but not decoded. Nothing for a record that cannot be read.
MXTRAIN_API std::vector<std::optional<uint64_t>> RecordIdentities(const io::Source& source);

// Only identities are in memory: features go straight from the file to where they are used, and
// from there into the file.
class MXTRAIN_API FeatureFile {
 public:
  using Take = std::function<void(uint64_t identity, std::span<const float> numbers)>;

  // Opens the file of this key in `folder`, if there is one; a damaged one is as none, with a
  // warning in `log`. `numbers`: of an example.
  FeatureFile(const std::string& folder, std::string key, int64_t numbers, Logger log);

  const std::string& path() const { return path_; }
  int64_t examples() const { return std::ssize(identities_); }
  // Whether features are the same at every place of a batch; if not, the file is only good for the
  // same examples in the same order.
  bool any_place() const { return any_place_; }
  bool HoldsInOrder(const std::vector<std::optional<uint64_t>>& identities) const;
  // Gives all features, in the order of the file; the numbers are valid during the call. False if
  // the file is damaged: then it is as none, what was given is wrong, and `log` has a warning.
  bool Read(const Take& take);

  // Before Save: instead of what is there.
  void Clear();
  // The numbers must live until Save.
  void Add(uint64_t identity, std::span<const float> numbers);
  // What Read gave, and what was added. Throws kFileSystem, and kData if the file can no longer be
  // read.
  void Save(bool any_place) const;

 private:
  void Open();
  void ReadRows(const Take& take) const;
  std::string Header(int64_t examples, bool any_place) const;

  const std::string path_, key_;
  const int64_t numbers_;
  const Logger log_;
  bool any_place_ = true;
  std::unique_ptr<FileReader> file_;  // null: nothing is there
  uint64_t rows_at_ = 0;              // bytes before the first row
  std::vector<uint64_t> identities_;  // first those in the file
  std::vector<std::span<const float>> added_;
};

}  // namespace mxtrain
