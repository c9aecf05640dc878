// SPDX-License-Identifier: Apache-2.0
#pragma once
// Binding a net to an iterator's data. If batches hold pixels (DataDesc::pixels), the bound net
// starts with the operator that normalizes them, which runs on the device as part of the step; if
// they are packed documents, attention sees each alone (packed_tokens.h). The net in checkpoints
// and models keeps its float32 input, and is for one text.
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/executor/executor.h"
#include "mxtrain/io/data_iter.h"

namespace mxtrain {

// The net for the arrays of the iterator's batches; the net itself if these are its inputs. The
// operator is named "INPUT_normalize".
MXTRAIN_API Symbol OnBatchesOf(const DataIter& iter, const OperatorRegistry& operators,
                               const Symbol& net);

// Compute options, used in training and in its evaluation.
struct ComputeModes {
  Math math = Math::kFast;
  // Mixed precision; in float16 training scales the loss (kvstore/loss_scale.h).
  std::optional<DType> amp = std::nullopt;
  bool deterministic = false;  // the same bits in every run
  bool fuse = true;
  std::map<std::string, Context> group2ctx = {};  // devices of groups of layers (BindRequest)
};

// The arrays of an iterator's batches: data, then labels.
MXTRAIN_API std::vector<DataDesc> ArraysOf(const DataIter& iter);

// The sizes of the batches of an iterator (DataIter::sizes). With several, a net is bound to the
// largest, and reshaped to the others. Immutable.
class MXTRAIN_API BatchSizes {
 public:
  explicit BatchSizes(const DataIter& iter) : sizes_(iter.sizes()) {}
  size_t count() const { return sizes_.size(); }
  size_t largest() const { return count() - 1; }
  size_t Of(const DataBatch& batch) const { return IndexOfSize(sizes_, batch); }
  // Of the data and labels that are inputs of the executor, for a part of `parts` equal ones of a
  // batch.
  std::map<std::string, TShape> ShapesOf(size_t size, const Executor& executor,
                                         int64_t parts = 1) const;

 private:
  std::vector<BatchArrays> sizes_;
};

// Request for binding a net to a batch's arrays, without gradients. Arrays the net does not read
// are labels of metrics; a shape without a rank is inferred by the net.
MXTRAIN_API Executor::BindRequest EvaluationRequest(const Symbol& net,
                                                    std::span<const DataDesc> arrays, Context ctx,
                                                    const ComputeModes& modes);

}  // namespace mxtrain
