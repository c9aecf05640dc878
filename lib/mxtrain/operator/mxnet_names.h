// SPDX-License-Identifier: Apache-2.0
#pragma once
// MXNet's macros under their own names, for operators that are taken over as they are
// (docs/mxnet_forms.md). XPU is the device of the source: cpu here, gpu in a .cu, which includes
// mxnet_names.cuh. Not for use beside MXNet's headers.
#include "mxtrain/operator/mxnet_operator.h"

#define XPU cpu

#define MSHADOW_REAL_TYPE_SWITCH(type, DType, ...) \
  MXTRAIN_REAL_TYPE_SWITCH(type, DType, __VA_ARGS__)
#define MSHADOW_TYPE_SWITCH(type, DType, ...) MXTRAIN_TYPE_SWITCH(type, DType, __VA_ARGS__)

// out = or += exp, as `req` says.
#define ASSIGN_DISPATCH(out, req, exp)        \
  switch (req) {                              \
    case ::mxtrain::OpReqType::kNullOp:       \
      break;                                  \
    case ::mxtrain::OpReqType::kWriteTo:      \
    case ::mxtrain::OpReqType::kWriteInplace: \
      (out).Store(exp);                       \
      break;                                  \
    case ::mxtrain::OpReqType::kAddTo:        \
      (out) += (exp);                         \
      break;                                  \
  }

// In a function MXTRAIN_OPERATOR(id, registry). For the device of the source.
#define MXNET_REGISTER_OP_PROPERTY(name, Property) \
  MXTRAIN_REGISTER_OP_PROPERTY_ON(name, Property, ::mxtrain::mxnet::XPU::kDevMask)
#define MXNET_REGISTER_SIMPLE_OP(name, DEV) MXTRAIN_REGISTER_SIMPLE_OP(name, DEV)
