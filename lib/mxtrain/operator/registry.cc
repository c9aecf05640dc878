// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>

#include "mxtrain/base/suggest.h"
#include "mxtrain/device/gpu_library.h"
#include "mxtrain/operator/host_kernel.h"
#include "mxtrain/operator/internal/simple_op_entries.h"

namespace mxtrain {
namespace {

struct CloseLibrary {
  void operator()(void* handle) const { dlclose(handle); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

// Without the path, with which the loader begins.
std::string LastLoaderError(const std::string& path) {
  const char* error = dlerror();
  const std::string text = error ? error : "unknown error";
  return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
}

template <typename F>
F* FindSymbol(const Library& library, const char* symbol, const std::string& path) {
  void* address = dlsym(library.get(), symbol);
  if (!address) {
    Throw(ErrorKind::kConfig,
          "{} is not an mxtrain plug-in: symbol {} is missing; build it with mxtrain_add_plugin",
          path, symbol);
  }
  return reinterpret_cast<F*>(address);
}

void CheckPairs(const OperatorProperty& property, const char* of,
                const std::vector<InplacePair>& pairs, size_t from, const char* from_what,
                size_t to, const char* to_what) {
  for (const InplacePair& pair : pairs) {
    const auto within = [](int at, size_t count) {
      return at >= 0 && static_cast<size_t>(at) < count;
    };
    if (within(pair.from, from) && within(pair.to, to)) continue;
    Throw(ErrorKind::kConfig,
          "operator {}: the {} pair ({}, {}) is out of range: there are {} {} and {} {}",
          property.TypeString(), of, pair.from, pair.to, from, from_what, to, to_what);
  }
}

// Pairs of arrays that share memory: an argument and an output in forward, in backward an array
// that it reads (InplacePair) and an argument's gradient.
void CheckPairs(const OperatorProperty& property) {
  const size_t in = property.ListArguments().size(),
               out = static_cast<size_t>(property.NumOutputs());
  CheckPairs(property, "forward in-place", property.ForwardInplaceOption(), in, "arguments", out,
             "outputs");
  CheckPairs(property, "forward identity", property.ForwardIdentityOption(), in, "arguments", out,
             "outputs");
  CheckPairs(property, "backward in-place", property.BackwardInplaceOption(), out + in + out,
             "arrays that backward reads", in, "gradients");
  CheckPairs(property, "backward identity", property.BackwardIdentityOption(), out,
             "head gradients", in, "gradients");
}

}  // namespace

struct OperatorRegistry::Impl {
  struct Maker {
    std::vector<std::string> aliases;
    std::function<std::unique_ptr<OperatorProperty>()> make;
  };
  struct Tables {
    std::map<std::string, Maker, std::less<>> makers;           // by canonical name
    std::map<std::string, std::string, std::less<>> canonical;  // names and aliases
    // By operator and device, each sorted by rank.
    std::map<std::pair<std::string, DeviceType>, std::vector<const KernelEntry*>, std::less<>>
        order;
    std::vector<FusePattern> patterns;
  };
  std::vector<Library> plugins;
  Tables tables;
  // The tables point into it; a deque keeps the addresses that Kernels() returns.
  std::deque<KernelEntry> entries;

  void Claim(const std::string& name, const std::string& target) {
    const auto [taken, fresh] = tables.canonical.emplace(name, target);
    if (!fresh)
      Throw(ErrorKind::kConfig, "operator {}: the name '{}' is already taken by operator {}",
            target, name, taken->second);
  }

  const std::string& Resolve(std::string_view name) const {
    const auto found = tables.canonical.find(name);
    if (found != tables.canonical.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [known_name, target] : tables.canonical) known.push_back(known_name);
    const std::string nearest = DidYouMean(name, known);
    Throw(ErrorKind::kConfig, "there is no operator '{}'{}", name,
          nearest.empty() ? "; `mxtrain ops` lists them, and --plugin FILE adds those of a plug-in"
                          : nearest);
  }
};

OperatorRegistry::OperatorRegistry() : impl_(std::make_unique<Impl>()) {}
OperatorRegistry::~OperatorRegistry() = default;

void OperatorRegistry::AddProperty(const std::string& name, const std::vector<std::string>& aliases,
                                   std::function<std::unique_ptr<OperatorProperty>()> make) {
  impl_->Claim(name, name);
  impl_->tables.makers.emplace(name, Impl::Maker{{}, std::move(make)});
  for (const std::string& alias : aliases) AddAlias(name, alias);
}

void OperatorRegistry::AddAlias(const std::string& name, const std::string& alias) {
  const std::string& target = impl_->Resolve(name);
  impl_->Claim(alias, target);
  impl_->tables.makers.find(target)->second.aliases.push_back(alias);
}

void OperatorRegistry::AddKernel(KernelEntry entry) {
  if (entry.name == kHostKernel)
    Throw(ErrorKind::kConfig, "operator {}: the kernel name '{}' is reserved; choose another",
          entry.op, entry.name);
  for (const KernelEntry* other : Kernels(entry.op, entry.device)) {
    if (other->name == entry.name)
      Throw(ErrorKind::kConfig, "operator {}: kernel '{}' is already registered", entry.op,
            entry.name);
  }
  const KernelEntry* added = &impl_->entries.emplace_back(std::move(entry));
  std::vector<const KernelEntry*>& order = impl_->tables.order[{added->op, added->device}];
  order.insert(std::upper_bound(order.begin(), order.end(), added,
                                [](auto* a, auto* b) { return a->rank < b->rank; }),
               added);
}

void OperatorRegistry::AddPattern(FusePattern pattern) {
  impl_->tables.patterns.push_back(std::move(pattern));
}

std::unique_ptr<OperatorProperty> OperatorRegistry::CreateUninitialized(
    std::string_view name) const {
  return impl_->tables.makers.find(impl_->Resolve(name))->second.make();
}

std::shared_ptr<const OperatorProperty> OperatorRegistry::Create(std::string_view name,
                                                                 const Kwargs& kwargs) const {
  std::unique_ptr<OperatorProperty> property = CreateUninitialized(name);
  property->Init(kwargs);
  CheckPairs(*property);
  return property;
}

bool OperatorRegistry::Has(std::string_view name) const {
  return impl_->tables.canonical.find(name) != impl_->tables.canonical.end();
}

std::string OperatorRegistry::CanonicalName(std::string_view name) const {
  return impl_->Resolve(name);
}

std::vector<std::string> OperatorRegistry::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, maker] : impl_->tables.makers) names.push_back(name);
  return names;
}

std::vector<std::string> OperatorRegistry::Aliases(std::string_view name) const {
  return impl_->tables.makers.find(impl_->Resolve(name))->second.aliases;
}

std::vector<const KernelEntry*> OperatorRegistry::Kernels(std::string_view op,
                                                          DeviceType device) const {
  const auto canonical = impl_->tables.canonical.find(op);
  const std::string key =
      canonical == impl_->tables.canonical.end() ? std::string(op) : canonical->second;
  const auto found = impl_->tables.order.find(std::pair(key, device));
  return found == impl_->tables.order.end() ? std::vector<const KernelEntry*>{} : found->second;
}

std::span<const FusePattern> OperatorRegistry::Patterns() const {
  return impl_->tables.patterns;
}

void OperatorRegistry::LoadPlugin(const std::string& path) {
  // The loader would search the system's library folders for a bare file name.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  std::error_code none;  // the loader would wait for a pipe
  if (std::filesystem::is_other(file, none))
    Throw(ErrorKind::kConfig, "cannot load the plug-in {}: it is not a regular file", path);
  Library library(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library)
    Throw(ErrorKind::kConfig, "cannot load the plug-in {}: {}", path, LastLoaderError(file));
  const PluginInfo* info = FindSymbol<const PluginInfo*()>(library, "mxtrain_plugin_info", path)();
  if (!info || !info->name || !info->version)
    Throw(ErrorKind::kConfig, "the plug-in {} does not say its name and version", path);
  if (info->abi != kPluginAbi) {
    Throw(ErrorKind::kConfig,
          "the plug-in {} ({}, built with mxtrain {}) has ABI number {}, but this program has {}; "
          "rebuild it",
          path, info->name, info->version, info->abi, kPluginAbi);
  }
  auto* enter = FindSymbol<void(OperatorRegistry&)>(library, "mxtrain_plugin_register", path);
  // The loader returns one handle per file, under any name.
  if (std::find(impl_->plugins.begin(), impl_->plugins.end(), library) != impl_->plugins.end())
    return;
  if (!Library(dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE))) {
    Throw(ErrorKind::kConfig, "cannot keep the plug-in {}: {}", path, LastLoaderError(file));
  }
  const Impl::Tables before = impl_->tables;
  const size_t entries = impl_->entries.size();
  const std::function<void()> restore_simple_ops = KeepSimpleOps(*this);
  try {
    enter(*this);
  } catch (...) {
    impl_->tables = before;
    restore_simple_ops();
    while (impl_->entries.size() > entries) impl_->entries.pop_back();
    RethrowWithPrefix(std::current_exception(), format("plug-in {} ({})", path, info->name));
  }
  impl_->plugins.push_back(std::move(library));
}

std::shared_ptr<OperatorRegistry> BuiltinOperators(DeviceType device) {
  auto registry = std::make_shared<OperatorRegistry>();
  RegisterOperators(*registry);
  if (device == DeviceType::kGPU) {
    if (const GpuLibrary library = OpenGpuLibrary(); library.handle)
      registry->LoadPlugin(library.path);
  }
  return registry;
}

}  // namespace mxtrain
