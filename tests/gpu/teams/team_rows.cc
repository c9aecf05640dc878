#include "tests/gpu/teams/team_rows.h"

#include "mxtrain/operators/activation/activation_loops.h"
#include "mxtrain/operators/argmax/argmax.h"
#include "mxtrain/operators/batch_norm/batch_norm_loops.h"
#include "mxtrain/operators/block_grad/block_grad_loops.h"
#include "mxtrain/operators/broadcast_binary/broadcast_binary_loops.h"
#include "mxtrain/operators/broadcast_to/broadcast_to_loops.h"
#include "mxtrain/operators/cast/cast_loops.h"
#include "mxtrain/operators/clip/clip.h"
#include "mxtrain/operators/concat/concat_loops.h"
#include "mxtrain/operators/convolution/convolution_loops.h"
#include "mxtrain/operators/dropout/dropout_loops.h"
#include "mxtrain/operators/elemwise_binary/elemwise_binary_loops.h"
#include "mxtrain/operators/elemwise_scalar/elemwise_scalar_loops.h"
#include "mxtrain/operators/elemwise_unary/elemwise_unary_loops.h"
#include "mxtrain/operators/expand_dims/expand_dims_loops.h"
#include "mxtrain/operators/fold_batch_norm/fold_batch_norm_loops.h"
#include "mxtrain/operators/global_norm/global_norm_loops.h"
#include "mxtrain/operators/hard_sigmoid/hard_sigmoid.h"
#include "mxtrain/operators/leaky_relu/leaky_relu_loops.h"
#include "mxtrain/operators/loss_scale/loss_scale_loops.h"
#include "mxtrain/operators/lrn/lrn_loops.h"
#include "mxtrain/operators/make_loss/make_loss_loops.h"
#include "mxtrain/operators/norm/norm.h"
#include "mxtrain/operators/optimizer_update/optimizer_update_loops.h"
#include "mxtrain/operators/pooling/pooling_loops.h"
#include "mxtrain/operators/random_sample/random_sample_loops.h"
#include "mxtrain/operators/reduce/reduce_loops.h"
#include "mxtrain/operators/regression_output/regression_output_loops.h"
#include "mxtrain/operators/roi_pooling/roi_pooling_loops.h"
#include "mxtrain/operators/slice/slice_loops.h"
#include "mxtrain/operators/slice_channel/slice_channel_loops.h"
#include "mxtrain/operators/softmax_activation/softmax_activation_loops.h"
#include "mxtrain/operators/softmax_cross_entropy/softmax_cross_entropy.h"
#include "mxtrain/operators/softmax_output/softmax_output_loops.h"
#include "mxtrain/operators/transpose/transpose_loops.h"
#include "tests/support/team_device.h"

namespace mxtrain::test {
namespace {

template <typename D>
void AddSimpleRows(OperatorRegistry& registry) {
  argmax::AddRows<D>(registry);
  broadcast_binary::AddRows<D>(registry);
  broadcast_to::AddRows<D>(registry);
  elemwise_binary::AddRows<D>(registry);
  elemwise_scalar::AddRows<D>(registry);
  elemwise_unary::AddRows<D>(registry);
  expand_dims::AddRows<D>(registry);
  reduce::AddRows<D>(registry);
  slice::AddRows<D>(registry);
  transpose::AddRows<D>(registry);
  SimpleOp(registry, "clip").set_function(D::kType, clip::Forward<D>, kInplaceInOut).set_gradient(D::kType, clip::Backward<D>, kInplaceOutIn);
  SimpleOp(registry, "hard_sigmoid")
      .set_function(D::kType, hard_sigmoid::Forward<D>, kInplaceInOut)
      .set_gradient(D::kType, hard_sigmoid::Backward<D>, kInplaceOutIn);
  SimpleOp(registry, "norm").set_function(D::kType, norm::Forward<D>, kNoInplace).set_gradient(D::kType, norm::Backward<D>, kNoInplace);
  SimpleOp(registry, "softmax_cross_entropy")
      .set_function(D::kType, softmax_cross_entropy::Forward<D>, kNoInplace)
      .set_gradient(D::kType, softmax_cross_entropy::Backward<D>, kNoInplace);
}

template <typename D>
void AddOtherRows(OperatorRegistry& registry) {
  batch_norm::AddRows<D>(registry);
  convolution::AddReferenceRows<D>(registry);
  global_norm::AddRows<D>(registry);
  loss_scale::AddRows<D>(registry);
  make_loss::AddRows<D>(registry);
  optimizer_update::AddRows<D>(registry);
  random_sample::AddRows<D>(registry);
  regression_output::AddRows<D>(registry);
  registry.AddRow(ActivationRow<D>());
  registry.AddRow(BlockGradRow<D>());
  registry.AddRow(CastRow<D>());
  registry.AddRow(IdentityRow<D>("Flatten"));
  registry.AddRow(IdentityRow<D>("Reshape"));
  registry.AddRow(softmax_activation::Row<D>());
  registry.AddRow(LastRow<D>("Concat", concat::MakePlan<D>));
  registry.AddRow(LastRow<D>("Dropout", dropout::MakePlan<D>));
  registry.AddRow(LastRow<D>("LRN", lrn::MakePlan<D>));
  registry.AddRow(LastRow<D>("LeakyReLU", leaky_relu::MakePlan<D>));
  registry.AddRow(LastRow<D>("Pooling", pooling::MakePlan<D>));
  registry.AddRow(LastRow<D>("ROIPooling", roi_pooling::MakePlan<D>));
  registry.AddRow(LastRow<D>("SliceChannel", slice_channel::MakePlan<D>));
  registry.AddRow(LastRow<D>("SoftmaxOutput", softmax_output::MakePlan<D>));
  registry.AddRow(LastRow<D>("_FoldBatchNorm", fold_batch_norm::MakePlan<D>));
}

}  // namespace

void AddTeamRows(OperatorRegistry& registry) {
  AddSimpleRows<OnTeams>(registry);
  AddOtherRows<OnTeams>(registry);
}

}  // namespace mxtrain::test
