#include "mxtrain/operators/lrn/lrn_loops.h"

MXTRAIN_OPERATOR(lrn_cpu, registry) {
  using namespace mxtrain;
  registry.AddRow(LastRow<OnCpu>("LRN", lrn::MakePlan<OnCpu>));
}
