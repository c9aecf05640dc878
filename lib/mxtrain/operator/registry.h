// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operators known to a program and their kernels. Filled once at start (RegisterOperators,
// plug-ins), read-only and safe from every thread afterwards.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/device/backend.h"
#include "mxtrain/operator/property.h"

namespace mxtrain {

// One implementation of an operator. The kernels of an operator on a device are tried in order of
// rank; `ref` (rank kRefRank) is the last.
using PlanFn =
    std::function<Expected<Plan, Refusal>(const OperatorProperty&, const PlanRequest&, Backend&)>;
struct KernelEntry {
  std::string op;
  DeviceType device = DeviceType::kCPU;
  std::string name;  // "ref", "onednn", "simd", "image_blocked"
  int rank = 0;
  PlanFn plan;
};
inline constexpr int kRefRank = 1000;

// A fusion rule as data, kept in the folder of the operator that it creates. Matches a chain of
// operators, each the only reader of the one before it. The arguments of the fused operator are
// those of the first, then the additional ones of each that follows.
struct FusePattern {
  struct Link {
    std::string op;
    bool any_input = false;  // the preceding operator may feed any input (a sum); else input 0
    Link(const char* name, bool any = false) : op(name), any_input(any) {}
  };
  std::string name;         // "BatchNorm+Activation"
  std::vector<Link> chain;  // producer first
  std::string into;
  bool for_training = true, for_inference = true;
  // Parameters of `into`, or nullopt if these operators do not match.
  std::function<std::optional<Kwargs>(std::span<const OperatorProperty* const> chain)> params;
};

class MXTRAIN_API OperatorRegistry {
 public:
  OperatorRegistry();
  ~OperatorRegistry();

  // Throws kConfig when the name or an alias is taken.
  void AddProperty(const std::string& name, const std::vector<std::string>& aliases,
                   std::function<std::unique_ptr<OperatorProperty>()> make);
  void AddAlias(const std::string& name, const std::string& alias);
  // Throws kConfig if the operator has a kernel of that name on the device.
  void AddKernel(KernelEntry entry);
  void AddPattern(FusePattern pattern);

  // Throws kConfig "there is no operator 'X'; did you mean 'Y'?". Aliases are accepted.
  std::shared_ptr<const OperatorProperty> Create(std::string_view name, const Kwargs& kwargs) const;
  // For `ops`: parameters, help.
  std::unique_ptr<OperatorProperty> CreateUninitialized(std::string_view name) const;
  bool Has(std::string_view name) const;
  std::string CanonicalName(std::string_view name) const;
  std::vector<std::string> Names() const;  // canonical, sorted
  std::vector<std::string> Aliases(std::string_view name) const;
  std::vector<const KernelEntry*> Kernels(std::string_view op, DeviceType device) const;  // by rank
  std::span<const FusePattern> Patterns() const;

  // Loads a shared object made by mxtrain_add_plugin and lets it register. One that this registry
  // has already loaded is ignored. Throws kConfig: not found, not a plug-in, built for another ABI
  // number (the error names both), or errors of registration (a name already taken); the registry
  // is then unchanged. A plug-in's code stays loaded until the process ends: properties, operators
  // and running functions may outlive the registry.
  void LoadPlugin(const std::string& path);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The interface version that a plug-in and the library must share; raised with every incompatible
// change to the headers of operator/.
inline constexpr int kPluginAbi = 7;
struct PluginInfo {
  int abi;
  const char* name;
  const char* version;  // of the headers it was built with
};

// A registry with every operator of this build and its CPU kernels. For the GPU, also those of the
// CUDA backend if it can be loaded; otherwise the backend reports why (CheckDevice).
MXTRAIN_API std::shared_ptr<OperatorRegistry> BuiltinOperators(
    DeviceType device = DeviceType::kCPU);
// Generated from the folders of operators/.
void RegisterOperators(OperatorRegistry& registry);

// One function per source file, named after the file:
//
//   MXTRAIN_OPERATOR(convolution_onednn, registry) { registry.AddKernel(...); }
//
// The build generates the list that calls them, for the tree and for a plug-in alike.
#define MXTRAIN_OPERATOR(id, registry)                                          \
  extern "C" void mxtrain_register_##id(::mxtrain::OperatorRegistry& registry); \
  extern "C" void mxtrain_register_##id(::mxtrain::OperatorRegistry& registry)

// Kernels written once for all devices, in a header of the operator's folder, outside of every
// namespace; `id` is the header's name without _loops:
//
//   MXTRAIN_KERNELS(softmax_activation, Device, registry) {
//     registry.AddKernel(mxtrain::softmax_activation::Kernel<Device>());
//   }
//
// Device is OnCpu, OnGpu, or a device of a test. The build generates a source for each, which calls
// this.
#define MXTRAIN_KERNELS(id, Device, registry) \
  template <typename Device>                  \
  void mxtrain_kernels_##id([[maybe_unused]] ::mxtrain::OperatorRegistry& registry)

}  // namespace mxtrain
