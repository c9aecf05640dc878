// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/teams/team_kernels.h"

#include "mxtrain/operators/activation/activation_loops.h"
#include "mxtrain/operators/batch_norm/batch_norm_loops.h"
#include "mxtrain/operators/block_grad/block_grad_loops.h"
#include "mxtrain/operators/cast/cast_loops.h"
#include "mxtrain/operators/concat/concat_loops.h"
#include "mxtrain/operators/convolution/convolution_loops.h"
#include "mxtrain/operators/dropout/dropout_loops.h"
#include "mxtrain/operators/fold_batch_norm/fold_batch_norm_loops.h"
#include "mxtrain/operators/image_normalize/image_normalize_loops.h"
#include "mxtrain/operators/leaky_relu/leaky_relu_loops.h"
#include "mxtrain/operators/lrn/lrn_loops.h"
#include "mxtrain/operators/make_loss/make_loss_loops.h"
#include "mxtrain/operators/pooling/pooling_loops.h"
#include "mxtrain/operators/random_sample/random_sample_loops.h"
#include "mxtrain/operators/regression_output/regression_output_loops.h"
#include "mxtrain/operators/roi_pooling/roi_pooling_loops.h"
#include "mxtrain/operators/slice_channel/slice_channel_loops.h"
#include "mxtrain/operators/softmax_activation/softmax_activation_loops.h"
#include "mxtrain/operators/softmax_output/softmax_output_loops.h"
#include "tests/support/team_device.h"

namespace mxtrain::test {

void AddLayerTeamKernels(OperatorRegistry& registry) {
  batch_norm::AddKernels<OnTeams>(registry);
  convolution::AddReferenceKernels<OnTeams>(registry);
  make_loss::AddKernels<OnTeams>(registry);
  random_sample::AddKernels<OnTeams>(registry);
  regression_output::AddKernels<OnTeams>(registry);
  registry.AddKernel(ActivationKernel<OnTeams>());
  registry.AddKernel(BlockGradKernel<OnTeams>());
  registry.AddKernel(CastKernel<OnTeams>());
  registry.AddKernel(IdentityKernel<OnTeams>("Flatten"));
  registry.AddKernel(IdentityKernel<OnTeams>("Reshape"));
  registry.AddKernel(image_normalize::Kernel<OnTeams>());
  registry.AddKernel(softmax_activation::Kernel<OnTeams>());
  registry.AddKernel(LastKernel<OnTeams>("Concat", concat::MakePlan<OnTeams>));
  registry.AddKernel(LastKernel<OnTeams>("Dropout", dropout::MakePlan<OnTeams>));
  registry.AddKernel(LastKernel<OnTeams>("LRN", lrn::MakePlan<OnTeams>));
  registry.AddKernel(LastKernel<OnTeams>("LeakyReLU", leaky_relu::MakePlan<OnTeams>));
  registry.AddKernel(LastKernel<OnTeams>("Pooling", pooling::MakePlan<OnTeams>));
  registry.AddKernel(LastKernel<OnTeams>("ROIPooling", roi_pooling::MakePlan<OnTeams>));
  registry.AddKernel(LastKernel<OnTeams>("SliceChannel", slice_channel::MakePlan<OnTeams>));
  registry.AddKernel(LastKernel<OnTeams>("SoftmaxOutput", softmax_output::MakePlan<OnTeams>));
  registry.AddKernel(LastKernel<OnTeams>("_FoldBatchNorm", fold_batch_norm::MakePlan<OnTeams>));
}

}  // namespace mxtrain::test
