// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/random_sample/random_sample.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain::random_sample {

MXTRAIN_OPERATOR(random_sample, registry) {
  registry.AddProperty("_random_uniform", {"uniform", "random_uniform"}, [] {
    return std::make_unique<SampleProperty<UniformParam>>("_random_uniform");
  });
  registry.AddProperty("_random_normal", {"normal", "random_normal"}, [] {
    return std::make_unique<SampleProperty<NormalParam>>("_random_normal");
  });
}

}  // namespace mxtrain::random_sample
