// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "mxtrain/symbol/internal/vertex.h"

namespace mxtrain {
namespace {

// What bears one generated name in a graph: an operator with its variables, either of which may be
// missing, or a copy of the operator.
struct Bearers {
  const GeneratedName* generated = nullptr;
  std::vector<size_t> vertices;
};

class Naming {
 public:
  explicit Naming(std::span<const VertexRef> vertices)
      : vertices_(vertices), names_(vertices.size()) {
    for (size_t i = 0; i < vertices.size(); ++i) {
      if (vertices[i]->generated) continue;
      names_[i] = vertices[i]->node.name;
      taken_.insert(names_[i]);
    }
  }

  std::vector<std::string> Take() {
    const std::vector<Bearers> groups = Groups();
    std::vector<const Bearers*> late;
    for (const Bearers& group : groups) {
      if (!Name(group, group.generated->name)) late.push_back(&group);
    }
    for (const Bearers* group : late) {
      int& counter = counters_[group->generated->hint];
      while (!Name(*group, group->generated->hint + std::to_string(counter))) ++counter;
    }
    return std::move(names_);
  }

 private:
  // In the order of their first vertices.
  std::vector<Bearers> Groups() const {
    std::vector<Bearers> groups;
    std::unordered_map<const GeneratedName*, size_t> group_of;
    std::unordered_set<const GeneratedName*> has_operator;
    for (size_t i = 0; i < vertices_.size(); ++i) {
      const GeneratedName* generated = vertices_[i]->generated.get();
      if (!generated) continue;
      const bool copy = !vertices_[i]->node.is_variable() && !has_operator.insert(generated).second;
      const auto [found, first] = group_of.try_emplace(generated, groups.size());
      if (copy || first) groups.push_back({generated, {}});
      groups[copy ? groups.size() - 1 : found->second].vertices.push_back(i);
    }
    return groups;
  }

  // Whether all of the names were free, and are theirs now.
  bool Name(const Bearers& group, const std::string& name) {
    for (const size_t i : group.vertices) {
      if (taken_.contains(name + vertices_[i]->suffix)) return false;
    }
    for (const size_t i : group.vertices) {
      names_[i] = name + vertices_[i]->suffix;
      taken_.insert(names_[i]);
    }
    return true;
  }

  const std::span<const VertexRef> vertices_;
  std::vector<std::string> names_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> counters_;  // by hint: all lower ones are taken
};

}  // namespace

std::vector<std::string> NamesOf(std::span<const VertexRef> vertices) {
  return Naming(vertices).Take();
}

}  // namespace mxtrain
