// mxtrain ops [NAME]: the operator reference, from the registry.
#include <algorithm>
#include <cctype>
#include <iostream>

#include "app/commands/session.h"
#include "app/config/other_tools.h"
#include "app/report/output.h"
#include "mxtrain/base/error.h"

namespace mxtrain::commands {
namespace {

class Ops final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("ops", "the operator reference");
    arguments.Option("name", &name_, "one operator, with its parameters").Takes("OPERATOR");
    arguments.Examples("  mxtrain ops\n  mxtrain ops Convolution\n  mxtrain ops Pooling --json");
  }

  bool Computes() const override { return false; }

  int Run(const CommonFlags& flags, report::Console&) override {
    const auto registry = MakeRegistry(flags.plugins, DeviceType::kGPU);
    if (name_.empty()) return flags.json ? ListJson(*registry) : List(*registry);
    CheckName(*registry);
    return flags.json ? (std::cout << report::JsonText(ToJson(*registry, registry->CanonicalName(name_)), 2) << "\n", 0) : Describe(*registry);
  }

 private:
  // Throws with the names that the word is a part of, else with the nearest.
  void CheckName(const OperatorRegistry& registry) const {
    const auto lower = [](std::string text) {
      std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
      return text;
    };
    try {
      registry.CanonicalName(name_);
    } catch (const Error& e) {
      const std::string other = config::OperatorOfOtherTools(name_);
      if (!other.empty()) Throw(e.kind(), "there is no operator '{}'; did you mean {}?", name_, other);
      std::vector<std::string> holding = PublicOperators(registry);
      std::erase_if(holding, [&](const std::string& name) { return lower(name).find(lower(name_)) == std::string::npos; });
      if (holding.empty()) throw;
      Throw(e.kind(), "there is no operator '{}'; did you mean {}?", name_, join(holding, ", "));
    }
  }

  static int List(const OperatorRegistry& registry) {
    size_t width = 0;
    for (const std::string& name : PublicOperators(registry)) width = std::max(width, name.size());
    for (const std::string& name : PublicOperators(registry)) {
      const auto property = registry.CreateUninitialized(name);
      std::string text = property->Description();
      if (const size_t end = text.find('\n'); end != std::string::npos) text.resize(end);
      std::cout << format("{:<{}}  {}\n", name, width, text);
    }
    return 0;
  }

  static std::vector<std::string> Kernels(const OperatorRegistry& registry, const std::string& name, DeviceType device) {
    std::vector<std::string> names;
    for (const PlanRow* row : registry.Rows(name, device)) names.push_back(row->name);
    return names;
  }

  static Json ToJson(const OperatorRegistry& registry, const std::string& name) {
    const auto property = registry.CreateUninitialized(name);
    Json fields = Json::array();
    for (const FieldInfo& f : property->DescribeParams()) {
      fields.push_back({{"name", f.name}, {"type", f.type}, {"default", f.required ? Json() : Json(f.default_text)}, {"range", f.range},
                        {"help", f.help}, {"required", f.required}, {"ignored", f.ignored}});
    }
    return {{"name", name},
            {"aliases", registry.Aliases(name)},
            {"description", property->Description()},
            {"parameters", fields},
            {"cpu_kernels", Kernels(registry, name, DeviceType::kCPU)},
            {"gpu_kernels", Kernels(registry, name, DeviceType::kGPU)}};
  }

  static int ListJson(const OperatorRegistry& registry) {
    Json all = Json::array();
    for (const std::string& name : PublicOperators(registry)) all.push_back(ToJson(registry, name));
    std::cout << report::JsonText(all, 2) << "\n";
    return 0;
  }

  int Describe(const OperatorRegistry& registry) const {
    const std::string name = registry.CanonicalName(name_);
    const auto property = registry.CreateUninitialized(name);
    std::cout << name;
    const auto aliases = registry.Aliases(name);
    if (!aliases.empty()) std::cout << format("  (also {})", join(aliases, ", "));
    std::cout << "\n" << property->Description() << "\n";
    const auto fields = property->DescribeParams();
    if (!fields.empty()) std::cout << "\nParameters:\n";
    for (const FieldInfo& f : fields) {
      if (f.ignored) {
        std::cout << format("  {}\n      {} (accepted for files of MXNet; no effect here)\n", f.name, f.help);
        continue;
      }
      std::cout << format("  {} ({}{}{})\n      {}\n", f.name, f.type, f.range.empty() ? "" : " " + f.range,
                          f.required ? ", required" : ", default " + (f.default_text.empty() ? "\"\"" : f.default_text), f.help);
    }
    std::cout << format("\nCPU kernels, best first: {}\n", join(Kernels(registry, name, DeviceType::kCPU), ", "));
    const auto on_gpu = Kernels(registry, name, DeviceType::kGPU);
    if (!on_gpu.empty()) std::cout << format("GPU kernels, best first: {}\n", join(on_gpu, ", "));
    return 0;
  }

  std::string name_;
};

}  // namespace

std::unique_ptr<Command> MakeOps() { return std::make_unique<Ops>(); }

}  // namespace mxtrain::commands
