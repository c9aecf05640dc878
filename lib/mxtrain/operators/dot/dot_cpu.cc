#include "mxtrain/operators/dot/dot_products.h"

MXTRAIN_OPERATOR(dot_cpu, registry) {
  using namespace mxtrain;
  registry.AddRow(LastRow<OnCpu>("dot", dot::PlanDot<OnCpu>));
}
