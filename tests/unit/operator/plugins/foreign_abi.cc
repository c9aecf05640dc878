// SPDX-License-Identifier: Apache-2.0
// A plug-in built with other headers.
#include "mxtrain/operator/registry.h"

extern "C" MXTRAIN_API const mxtrain::PluginInfo* mxtrain_plugin_info() {
  static const mxtrain::PluginInfo info = {mxtrain::kPluginAbi + 41, "stranger", "9.9.9"};
  return &info;
}
extern "C" MXTRAIN_API void mxtrain_plugin_register(mxtrain::OperatorRegistry&) {}
