// SPDX-License-Identifier: Apache-2.0
#include "app/config/net_hints.h"

#include "app/config/other_tools.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::config {
namespace {

// An operator with the value as its required parameter, else as its first one (for Pooling, the
// stride is the window size). `written` may contain others: "Pooling: {pool_type: avg}"; with all
// required ones it is the line.
std::string LineWith(const OperatorRegistry& registry, const std::string& written,
                     const Value& value) {
  const std::string op = written.substr(0, written.find(':'));
  const size_t others = written.find('{');
  std::vector<std::string> parameters;
  if (op == "Pooling") {
    parameters = {"kernel", "stride"};
  } else if (registry.Has(op)) {
    const std::vector<FieldInfo> fields = registry.CreateUninitialized(op)->DescribeParams();
    for (const FieldInfo& field : fields) {
      if (field.required) parameters.push_back(field.name);
    }
    if (parameters.empty() && !fields.empty() && others == std::string::npos)
      parameters = {fields.front().name};
  }
  std::erase_if(parameters, [&written](const std::string& parameter) {
    return written.find("{" + parameter + ":") != std::string::npos ||
           written.find(" " + parameter + ":") != std::string::npos;
  });
  if (parameters.empty() && others != std::string::npos) return written;
  const std::string text = value.is_scalar() ? value.text : "...";
  std::string given;
  for (const std::string& parameter : parameters) {
    const bool known = given.empty() || op == "Pooling";
    given += format("{}{}: {}", given.empty() ? "" : ", ", parameter, known ? text : "...");
  }
  return others == std::string::npos
             ? format("{}: {{{}}}", op, given)
             : format("{}, {}}}", written.substr(0, written.rfind('}')), given);
}

// For "Dropout: 0.3".
void ReportBareValue(const Member& m, Expansion* expansion) {
  const OperatorRegistry& registry = expansion->registry();
  const bool known = registry.Has(m.key) || expansion->config().blocks.Find(m.key);
  const std::string other = known ? "" : OperatorOfOtherTools(m.key, m.value.text);
  if (!known && other.empty()) return ReportUnknownOperator(m.key, m.place, expansion);
  const std::string line = LineWith(registry, known ? m.key : other, m.value);
  if (!known)
    return expansion->Error(m.place, format("there is no operator or block '{}'", m.key),
                            format("did you mean '- {}'?", line));
  expansion->Error(m.value.place,
                   format("{} takes a map of parameters, got {}", m.key, m.value.Describe()),
                   "write - " + line);
}

}  // namespace

bool ReportTypeKey(const Value& item, Expansion* expansion) {
  if (!item.is_map() || item.members.empty()) return false;
  const Member& first = item.members[0];
  const bool names_operator =
      first.key == "type" || first.key == "op" || first.key == "class_name" || first.key == "name";
  if (!names_operator || expansion->registry().Has(first.key) || !first.value.is_scalar() ||
      expansion->config().blocks.Find(first.key))
    return false;
  expansion->Error(first.place,
                   format("a layer begins with its operator, not with '{}'", first.key),
                   format("write - {}: {{parameter: value}}", first.value.text));
  return true;
}

void ReportNoLayer(const Value& item, Expansion* expansion) {
  if (item.is_map() && item.members.size() == 1) {
    ReportBareValue(item.members[0], expansion);
  } else if (item.is_map() && item.members.size() > 1 && item.members[0].value.is_null()) {
    expansion->Error(item.members[1].place,
                     format("'{}' does not belong to the layer above it", item.members[1].key),
                     format("indent the parameters of {0}, or write - {0}: {{{1}: ...}}",
                            item.members[0].key, item.members[1].key));
  } else if (item.is_map() && item.members.size() > 1) {
    expansion->Error(item.members[1].place,
                     format("a layer is one operator, but '{}' follows '{}'", item.members[1].key,
                            item.members[0].key),
                     "begin every layer with '- '");
  } else {
    expansion->Error(item.place, format("expected a layer, got {}", item.Describe()),
                     "- Convolution: {num_filter: 20, kernel: 5}");
  }
}

void ReportUnknownOperator(const std::string& key, const Place& place, Expansion* expansion) {
  std::vector<std::string> names = expansion->registry().Names();
  for (const Member& m : expansion->config().blocks.members) names.push_back(m.key);
  names.insert(names.end(), {"repeat", "Variable"});
  const std::string other = OperatorOfOtherTools(key), advice = AdviceForOtherTools(key),
                    missing = MissingOperator(key);
  const std::string nearest = !other.empty() ? other : Nearest(key, names);
  expansion->Error(place, format("there is no operator or block '{}'", key),
                   !advice.empty()    ? advice
                   : !missing.empty() ? missing
                   : nearest.empty()  ? "`mxtrain ops` lists the operators"
                                      : format("did you mean '{}'?", nearest));
}

}  // namespace mxtrain::config
