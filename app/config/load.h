#pragma once
// From a request to a checked Config.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/config.h"
#include "app/config/diagnostic.h"
#include "app/config/document.h"
#include "app/config/expression.h"

namespace mxtrain::config {

// One key of the configuration and where its value came from.
struct KeyOrigin {
  std::string path;
  Place place;  // nowhere: the default
};

// Why a run cannot be called so: its folder is NAME-0001 in runs/, and nowhere else. Null for a name that is good.
const char* WhyNoRunName(std::string_view name);

struct LoadedConfig {
  Config config;
  Value resolved;  // every key with its value; paths absolute, expressions of the net kept: ToYaml gives the run's config.yaml
  std::vector<KeyOrigin> origins;
  Place PlaceOf(std::string_view path) const;  // nowhere for a default
};

// Reads, merges and checks. Findings go to `diagnostics`, and the result is meaningful only when it holds no error; the net's own grammar
// is checked by BuildNet (net.h), so that a caller reports both at once.
LoadedConfig LoadConfig(const LoadRequest& request, Diagnostics* diagnostics);

// What other keys say of train.metrics, which are known: `best`, early_stop.target, label_delim. LoadConfig does so where they are written; who
// chooses them for a net does so then.
void CheckMetrics(const LoadedConfig& loaded, Diagnostics* diagnostics);

// The text of origin.txt: "train.epochs  default", a line each.
std::string OriginText(const std::vector<KeyOrigin>& origins, const SourceMap& sources);

// The values of `vars`, in order; each may use those above it; null takes away what an included file names. Findings go to `diagnostics`.
std::map<std::string, Constant> EvaluateVars(const Value& vars, Diagnostics* diagnostics);
// A scalar as it stands in an expression.
Constant ToConstant(const Value& scalar);
// Expand (expression.h) with the finding at its place. False after a finding.
bool ExpandAt(Value* scalar, const Names& names, Diagnostics* diagnostics, const std::vector<std::string>& notes = {});

}  // namespace mxtrain::config
