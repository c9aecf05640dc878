#pragma once
// How a net is bound to the data of an iterator. Where batches hold pixels (DataDesc::pixels), the bound net begins with the operator that makes
// its input of them, so that it runs on the device and inside the step; the net that checkpoints and models hold keeps its float32 input.
#include <optional>
#include <span>
#include <vector>

#include "mxtrain/executor/executor.h"
#include "mxtrain/io/data_iter.h"

namespace mxtrain {

// The net on the arrays of the iterator's batches; the net itself where these are its inputs. The operator is called "INPUT_normalize".
MXTRAIN_API Symbol OnBatchesOf(const DataIter& iter, const OperatorRegistry& operators, const Symbol& net);

// How a net is computed, in training and in the evaluation of what was trained alike.
struct ComputeModes {
  Math math = Math::kFast;
  std::optional<DType> amp = std::nullopt;  // mixed precision; in float16 training scales the loss (kvstore/loss_scale.h)
  bool deterministic = false;               // the same bits in every run
  bool fuse = true;
};

// What batches of an iterator bring: data, then labels.
MXTRAIN_API std::vector<DataDesc> ArraysOf(const DataIter& iter);

// To bind a net to a batch's arrays, without gradients. Arrays that the net does not read are labels of metrics; a shape without
// a rank is left to the net to infer.
MXTRAIN_API Executor::BindRequest EvaluationRequest(const Symbol& net, std::span<const DataDesc> arrays, Context ctx,
                                                    const ComputeModes& modes);

}  // namespace mxtrain
