#include "mxtrain/operators/softmax_activation/softmax_activation_loops.h"

MXTRAIN_OPERATOR(softmax_activation_cpu, registry) {
  registry.AddRow(mxtrain::softmax_activation::Row<mxtrain::OnCpu>());
}
