#include "mxtrain/operators/activation/activation_loops.h"

MXTRAIN_OPERATOR(activation_cpu, registry) {
  registry.AddRow(mxtrain::ActivationRow<mxtrain::OnCpu>());
}
