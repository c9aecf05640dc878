#pragma once
// How a net is bound to the data of an iterator. Where batches hold pixels (DataDesc::pixels), the bound net begins with the operator that makes
// its input of them, so that it runs on the device and inside the step; the net that checkpoints and models hold keeps its float32 input.
#include "mxtrain/executor/executor.h"
#include "mxtrain/io/data_iter.h"

namespace mxtrain {

// The net on the arrays of the iterator's batches; the net itself where these are its inputs. The operator is called "INPUT_normalize".
MXTRAIN_API Symbol OnBatchesOf(const DataIter& iter, const OperatorRegistry& operators, const Symbol& net);

// Adds inputs, shapes and types of what the iterator gives and the net reads, a batch in `parts` equal parts. Others are labels that metrics alone
// read.
MXTRAIN_API void RequestInputs(const DataIter& iter, const Symbol& net, int parts, Executor::BindRequest* request);

}  // namespace mxtrain
