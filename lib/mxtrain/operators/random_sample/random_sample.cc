// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/random_sample/random_sample.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain::random_sample {

MXTRAIN_OPERATOR(random_sample, registry) {
  ForEachSample([&registry](const char* name, auto tag) {
    using P = typename decltype(tag)::type;
    registry.AddProperty(name, {name + 1},
                         [name] { return std::make_unique<SampleProperty<P>>(name); });
  });
  registry.AddAlias("_random_uniform", "uniform");
  registry.AddAlias("_random_normal", "normal");
}

}  // namespace mxtrain::random_sample
