#include "mxtrain/operators/dropout/dropout_loops.h"

MXTRAIN_OPERATOR(dropout_cpu, registry) {
  using namespace mxtrain;
  registry.AddRow(LastRow<OnCpu>("Dropout", dropout::MakePlan<OnCpu>));
}
