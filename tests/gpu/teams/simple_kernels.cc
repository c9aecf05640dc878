// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/teams/team_kernels.h"

#include "mxtrain/operators/argmax/argmax.h"
#include "mxtrain/operators/broadcast_binary/broadcast_binary_loops.h"
#include "mxtrain/operators/broadcast_to/broadcast_to_loops.h"
#include "mxtrain/operators/clip/clip.h"
#include "mxtrain/operators/elemwise_binary/elemwise_binary_loops.h"
#include "mxtrain/operators/elemwise_scalar/elemwise_scalar_loops.h"
#include "mxtrain/operators/elemwise_unary/elemwise_unary_loops.h"
#include "mxtrain/operators/expand_dims/expand_dims_loops.h"
#include "mxtrain/operators/hard_sigmoid/hard_sigmoid.h"
#include "mxtrain/operators/norm/norm.h"
#include "mxtrain/operators/reduce/reduce_loops.h"
#include "mxtrain/operators/slice/slice_loops.h"
#include "mxtrain/operators/softmax_cross_entropy/softmax_cross_entropy.h"
#include "mxtrain/operators/transpose/transpose_loops.h"
#include "tests/support/team_device.h"

namespace mxtrain::test {

void AddSimpleTeamKernels(OperatorRegistry& registry) {
  using D = OnTeams;
  argmax::AddKernels<D>(registry);
  broadcast_binary::AddKernels<D>(registry);
  broadcast_to::AddKernels<D>(registry);
  elemwise_binary::AddKernels<D>(registry);
  elemwise_scalar::AddKernels<D>(registry);
  elemwise_unary::AddKernels<D>(registry);
  expand_dims::AddKernels<D>(registry);
  reduce::AddKernels<D>(registry);
  slice::AddKernels<D>(registry);
  transpose::AddKernels<D>(registry);
  SimpleOp(registry, "clip")
      .set_function(D::kType, clip::Forward<D>, kInplaceInOut)
      .set_gradient(D::kType, clip::Backward<D>, kInplaceOutIn);
  SimpleOp(registry, "hard_sigmoid")
      .set_function(D::kType, hard_sigmoid::Forward<D>, kInplaceInOut)
      .set_gradient(D::kType, hard_sigmoid::Backward<D>, kInplaceOutIn);
  SimpleOp(registry, "norm")
      .set_function(D::kType, norm::Forward<D>, kNoInplace)
      .set_gradient(D::kType, norm::Backward<D>, kNoInplace);
  SimpleOp(registry, "softmax_cross_entropy")
      .set_function(D::kType, softmax_cross_entropy::Forward<D>, kNoInplace)
      .set_gradient(D::kType, softmax_cross_entropy::Backward<D>, kNoInplace);
}

}  // namespace mxtrain::test
