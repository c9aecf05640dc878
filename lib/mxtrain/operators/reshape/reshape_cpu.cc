#include "mxtrain/operator/identity.h"

MXTRAIN_OPERATOR(reshape_cpu, registry) {
  registry.AddRow(mxtrain::IdentityRow("Reshape"));
}
