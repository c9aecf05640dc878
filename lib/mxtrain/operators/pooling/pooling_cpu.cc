#include "mxtrain/operators/pooling/pooling_loops.h"

MXTRAIN_OPERATOR(pooling_cpu, registry) {
  using namespace mxtrain;
  registry.AddRow(LastRow<OnCpu>("Pooling", pooling::MakePlan<OnCpu>));
}
