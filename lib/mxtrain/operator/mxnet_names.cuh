// SPDX-License-Identifier: Apache-2.0
#pragma once
// mxnet_names.h for device code: XPU is gpu. Only .cu files include it, whatever the headers that
// they share with a .cc include.
#include "mxtrain/operator/mxnet_kernel.cuh"
#include "mxtrain/operator/mxnet_names.h"

#undef XPU
#define XPU gpu
