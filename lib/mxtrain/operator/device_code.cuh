// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that kernels written once for all devices need on a GPU: the versions for OnGpu of
// what they call. Generated sources include it before the kernels.
#include "mxtrain/operator/elementwise.cuh"
#include "mxtrain/operator/identity.cuh"
#include "mxtrain/operator/kernel.cuh"
#include "mxtrain/operator/rows.cuh"
#include "mxtrain/operator/strided_view.cuh"
