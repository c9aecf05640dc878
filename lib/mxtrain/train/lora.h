// SPDX-License-Identifier: Apache-2.0
#pragma once
// LoRA: low-rank adaptation of a trained net (Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large
// Language Models", arXiv 2106.09685). The weights W [out, in] of chosen layers stay as they are,
// and the layers compute
//   y = W x + b + (alpha / rank) B A dropout(x)
// of which only A [rank, in] and B [out, rank] learn. A convolution of any kernel is the same with
// the numbers of a window as its inputs: A is a convolution with `rank` filters, B one of 1 x 1.
// Afterwards W + (alpha / rank) B A is a weight of the old form: a model has no factors.
//
// A checkpoint of such a run holds what learned, and says in which file the rest is.
#include <map>
#include <string>
#include <vector>

#include "mxtrain/symbol/symbol.h"
#include "mxtrain/train/weights.h"

namespace mxtrain {

struct LoraOptions {
  std::vector<std::string> layers;  // patterns of their names (base/glob.h)
  int64_t rank = 8;
  double alpha = 16;
  double dropout = 0;  // of what A reads
  double scale() const { return alpha / static_cast<double>(rank); }
};

// The names of W, A and B of a layer.
struct LoraFactors {
  std::string weight, a, b;
};

// The arrays of a net that do not learn, in a file of weights (ReadWeights).
struct BaseFile {
  std::string file;     // absolute
  std::string address;  // that it was downloaded from; "": none
  std::string state;
  std::vector<NameMap::Rule> rules;
  std::string checksum;  // of these arrays, by their names in the net
};

// How a model is made of a checkpoint's arrays.
struct LoraInfo {
  std::vector<LoraFactors> factors;
  double scale = 1;  // alpha / rank
  BaseFile base;
};

// The factors that these layers would get, in their order. Throws kConfig for a pattern that
// matches no FullyConnected or Convolution, and for a layer that has several groups, or whose
// weight is computed, or is read by another layer too.
MXTRAIN_API std::vector<LoraFactors> LoraFactorsOf(const Symbol& net, const LoraOptions& options);

// The net with the factors, "LAYER_lora_a_weight" (normal, of variance 1 / (3 in)) and
// "LAYER_lora_b_weight" (zero). The sum has the name of the layer; what it was before is
// "LAYER_base".
MXTRAIN_API Symbol WithLora(const OperatorRegistry& operators, const Symbol& net,
                            const LoraOptions& options);

// Of the arrays of these names; those that are missing do not count. 16 hexadecimal digits.
MXTRAIN_API std::string BaseChecksum(const std::map<std::string, NDArray>& arrays,
                                     const std::vector<std::string>& names);

struct Checkpoint;
constexpr int kMostBases = 8;  // each the base of the next

// Makes a checkpoint that holds factors, read from `path`, one of a plain net: adds the arrays of
// its base, and the factors to their weights; those that remain are averages, if the run kept them.
// The base is looked for where it was, then beside the checkpoint, then beside the folder of the
// checkpoints. Does nothing for a checkpoint without factors. `depth`: how many checkpoints have
// this one as their base. Throws kFileSystem if the base is gone, kData if it has changed or the
// checkpoint is damaged.
MXTRAIN_API void MergeLora(Runtime& runtime, const std::string& path, Checkpoint* checkpoint,
                           int depth = 0);

}  // namespace mxtrain
