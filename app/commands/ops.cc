// SPDX-License-Identifier: Apache-2.0
// mxtrain ops [NAME]: the operator reference, from the registry.
#include "app/commands/ops.h"

#include <algorithm>
#include <cctype>
#include <iostream>

#include "app/commands/command_list.h"
#include "app/commands/operator_arrays.h"
#include "app/config/other_tools.h"
#include "app/report/output.h"
#include "app/report/text_width.h"
#include "app/session/open_runtime.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::commands {
namespace {

constexpr const char *kLayers = "layers", *kLosses = "losses", *kOfOne = "elementwise functions",
                     *kOfTwo = "arithmetic on two arrays",
                     *kArrays = "shapes, reductions and products of arrays",
                     *kUpdates = "optimizer updates, chosen by train.optimizer (not layers)";
constexpr const char* kGroups[] = {kLayers, kLosses, kOfOne, kOfTwo, kArrays, kUpdates};

// By properties of the operator, and by MXNet's naming: layers begin with a capital.
const char* GroupOf(const std::string& name, const OperatorProperty& property) {
  if (name.ends_with("_update") || name == "clip_global_norm" || name == "multi_sum_sq")
    return kUpdates;
  // SliceChannel's number of outputs depends on a parameter.
  const bool has_outputs = property.NumVisibleOutputs() > 0;
  if (has_outputs && !property.NeedsHeadGradient() && name != "BlockGrad") return kLosses;
  if (std::isupper(static_cast<unsigned char>(name[0]))) return kLayers;
  const bool of_two = property.ListArguments().size() == 2;
  if (of_two && name.starts_with("broadcast_") && name != "broadcast_like") return kOfTwo;
  if (property.elementwise() != Elementwise::kNo) return of_two ? kOfTwo : kOfOne;
  return kArrays;
}

std::vector<std::string> Kernels(const OperatorRegistry& registry, const std::string& name,
                                 DeviceType device) {
  std::vector<std::string> names;
  for (const KernelEntry* row : registry.Kernels(name, device)) names.push_back(row->name);
  return names;
}

class Ops final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("ops", "show the operator reference");
    arguments.Option("name", &name_, "show one operator with its parameters").Takes("OPERATOR");
    arguments.Examples("  mxtrain ops\n  mxtrain ops Convolution\n  mxtrain ops Pooling --json");
  }

  bool Computes() const override { return false; }

  int Run(const CommonFlags& flags, console::Console&) override {
    const auto registry = session::MakeRegistry(flags.plugins, DeviceType::kGPU);
    if (name_.empty()) return flags.json ? ListJson(*registry) : List(*registry);
    CheckName(*registry);
    std::cout << (flags.json
                      ? report::JsonText(JsonOfOperator(*registry, name_), 2) + "\n"
                      : report::Fitted(TextOfOperator(*registry, name_), report::HelpColumns()));
    return 0;
  }

 private:
  // Throws with the names that contain the word, else with the nearest name.
  void CheckName(const OperatorRegistry& registry) const {
    try {
      registry.CanonicalName(name_);
    } catch (const Error& e) {
      const std::string other = config::OperatorOfOtherTools(name_);
      if (!other.empty())
        Throw(e.kind(), "there is no operator '{}'; did you mean {}?", name_, other);
      const std::string missing = config::MissingOperator(name_);
      if (!missing.empty()) Throw(e.kind(), "there is no operator '{}': {}", name_, missing);
      std::vector<std::string> holding = session::PublicOperators(registry);
      std::erase_if(holding, [&](const std::string& name) {
        return Lower(name).find(Lower(name_)) == std::string::npos;
      });
      if (holding.empty()) throw;
      Throw(e.kind(), "there is no operator '{}'; did you mean {}?", name_, join(holding, ", "));
    }
  }

  // One group at a time: layers first, optimizer updates last.
  static int List(const OperatorRegistry& registry) {
    size_t width = 0;
    for (const std::string& name : session::PublicOperators(registry))
      width = std::max(width, name.size());
    for (const char* group : kGroups) {
      std::string lines;
      for (const std::string& name : session::PublicOperators(registry)) {
        const auto property = registry.CreateUninitialized(name);
        if (GroupOf(name, *property) != group) continue;
        std::string text = property->Description();
        if (const size_t end = text.find('\n'); end != std::string::npos) text.resize(end);
        lines += format("  {:<{}}  {}\n", name, width, text);
      }
      if (!lines.empty())
        std::cout << format("{}{}:\n", group == kGroups[0] ? "" : "\n", group)
                  << report::Fitted(lines, report::HelpColumns());
    }
    return 0;
  }

  static int ListJson(const OperatorRegistry& registry) {
    Json all = Json::array();
    for (const std::string& name : session::PublicOperators(registry))
      all.push_back(JsonOfOperator(registry, name));
    std::cout << report::JsonText(all, 2) << "\n";
    return 0;
  }

  std::string name_;
};

}  // namespace

Json JsonOfOperator(const OperatorRegistry& registry, const std::string& wanted) {
  const std::string name = registry.CanonicalName(wanted);
  const auto property = registry.CreateUninitialized(name);
  Json fields = Json::array();
  for (const FieldInfo& f : property->DescribeParams()) {
    fields.push_back({{"name", f.name},
                      {"type", f.type},
                      {"default", f.required ? Json() : Json(f.default_text)},
                      {"range", f.range},
                      {"help", f.help},
                      {"required", f.required},
                      {"ignored", f.ignored}});
  }
  const ArraysReference arrays = DescribeArrays(registry, name);
  Json variants = Json::array();
  for (const ArraysVariant& v : arrays.variants) {
    variants.push_back({{"parameter", v.parameter},
                        {"value", v.value},
                        {"is_count", v.is_count},
                        {"arguments", v.arrays.arguments},
                        {"outputs", v.arrays.outputs},
                        {"auxiliary_states", v.arrays.auxiliary_states}});
  }
  return {{"name", name},
          {"group", GroupOf(name, *property)},
          {"aliases", registry.Aliases(name)},
          {"description", property->Description()},
          {"parameters", fields},
          {"arguments", arrays.base.arguments},
          {"outputs", arrays.base.outputs},
          {"auxiliary_states", arrays.base.auxiliary_states},
          {"variants", variants},
          {"cpu_kernels", Kernels(registry, name, DeviceType::kCPU)},
          {"gpu_kernels", Kernels(registry, name, DeviceType::kGPU)}};
}

std::string TextOfOperator(const OperatorRegistry& registry, const std::string& wanted) {
  const std::string name = registry.CanonicalName(wanted);
  const auto property = registry.CreateUninitialized(name);
  std::string text = name;
  const auto aliases = registry.Aliases(name);
  if (!aliases.empty()) text += format("  (also {})", join(aliases, ", "));
  text += "\n" + property->Description() + "\n";
  if (const std::string arrays = TextOfArrays(DescribeArrays(registry, name)); !arrays.empty())
    text += "\n" + arrays;
  const auto fields = property->DescribeParams();
  if (!fields.empty()) text += "\nParameters:\n";
  for (const FieldInfo& f : fields) {
    if (f.ignored) {
      text +=
          format("  {}\n      {} (accepted for MXNet's files; no effect here)\n", f.name, f.help);
      continue;
    }
    text +=
        format("  {} ({}{}{})\n      {}\n", f.name, f.type, f.range.empty() ? "" : " " + f.range,
               f.required ? ", required"
                          : ", default " + (f.default_text.empty() ? "\"\"" : f.default_text),
               f.help);
  }
  const auto on_cpu = Kernels(registry, name, DeviceType::kCPU),
             on_gpu = Kernels(registry, name, DeviceType::kGPU);
  // Operators without kernels are composites.
  text += !on_cpu.empty()  ? format("\nCPU kernels, best first: {}\n", join(on_cpu, ", "))
          : on_gpu.empty() ? "\nComputed as a graph of other operators.\n"
                           : "\nCPU kernels: none\n";
  if (!on_gpu.empty()) text += format("GPU kernels, best first: {}\n", join(on_gpu, ", "));
  return text;
}

MXTRAIN_COMMAND(ops, list) {
  list.Add(HelpGroup::kReference, 20, std::make_unique<Ops>());
}

}  // namespace mxtrain::commands
