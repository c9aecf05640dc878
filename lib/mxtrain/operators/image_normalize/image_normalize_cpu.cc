#include "mxtrain/operators/image_normalize/image_normalize_loops.h"

MXTRAIN_OPERATOR(image_normalize_cpu, registry) {
  registry.AddRow(mxtrain::image_normalize::Row<mxtrain::OnCpu>());
}
