// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the choices of keys do that the library's factories make by name, in a sentence or two each:
// what it does, its formula where it has one, and when to take it.
#include <string>

namespace mxtrain::config {

// "" for a name that is not known.
std::string HelpOnOptimizer(const std::string& name);
std::string HelpOnSchedule(const std::string& name);
std::string HelpOnMetric(const std::string& name);
std::string HelpOnInitializer(const std::string& name);

}  // namespace mxtrain::config
