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
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "mxtrain/base/log.h"
#include "mxtrain/io/source.h"
#include "mxtrain/train/feature_cut.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain {

// All that features depend on beside the record: the layers, the values of their parameters, how
// examples are prepared and what computes. `examples`: an iterator of these. Waits for the arrays.
MXTRAIN_API std::string FeatureKey(Runtime& runtime, const TrainOptions& options,
                                   const FeatureCut& cut,
                                   const std::map<std::string, NDArray>& args,
                                   const std::map<std::string, NDArray>& auxs,
                                   const DataIter& examples, bool validation);

// Of each record a number that is equal for equal contents: XXH3-64 of the bytes of its fields,
// which are read but not decoded. Nothing for a record that cannot be read.
MXTRAIN_API std::vector<std::optional<uint64_t>> RecordIdentities(const io::Source& source);

class MXTRAIN_API FeatureFile {
 public:
  // Reads the file of this key in `folder`, if there is one; a damaged one is as none, with a
  // warning in `log`. `numbers`: of an example.
  FeatureFile(const std::string& folder, std::string key, int64_t numbers, const Logger& log);

  const std::string& path() const { return path_; }
  int64_t examples() const { return std::ssize(identities_); }
  // Whether features are the same at every place of a batch; if not, the file is only good for the
  // same examples in the same order.
  bool any_place() const { return any_place_; }
  bool HoldsInOrder(const std::vector<std::optional<uint64_t>>& identities) const;
  // Empty: not there.
  std::span<const float> Find(uint64_t identity) const;

  // Before Save: instead of what is there.
  void Clear();
  void Add(uint64_t identity, std::span<const float> numbers);
  // Throws kFileSystem.
  void Save(bool any_place);

 private:
  void Load(const std::string& bytes);

  const std::string path_, key_;
  const int64_t numbers_;
  bool any_place_ = true;
  std::vector<uint64_t> identities_;
  std::vector<float> values_;
  std::unordered_map<uint64_t, int64_t> rows_;
};

}  // namespace mxtrain
