#pragma once
// The names within reach of some edges and what bears them: how a symbol keeps what every symbol promises (unique names; variables that are
// arguments or auxiliary states, but not both) without walking its graph anew for every node that is put on top. Private to symbol/.
//
// A value, immutable where it is shared: a mergeable map over the hashes of names (Okasaki and Gill, "Fast mergeable integer maps", 1998),
// whose versions have all but O(log n) nodes in common. Joining passes over what two scopes share, so that one more layer costs the
// logarithm of the net however the net branches.
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "mxtrain/symbol/vertex.h"

namespace mxtrain {

class Scope {
 public:
  // Both throw kConfig naming both bearers of a name, or both readers of a variable, and their places.
  void Add(std::span<const Edge> roots);  // a walk over the vertices that are not in scope yet
  void Join(const Scope& other);          // O(log n) for each name that only one of the two knows

  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  // `op` in lower case and the least counter from 0 that no name in scope has.
  std::string FreeName(std::string_view op);

 private:
  struct Bearer {
    const Vertex* vertex = nullptr;
    const Vertex* argument_of = nullptr;   // a reader, when it is a variable and read as an argument
    const Vertex* auxiliary_of = nullptr;  // a reader, when it is an auxiliary state
    friend bool operator==(const Bearer&, const Bearer&) = default;
  };
  struct Tree;
  using TreeRef = std::shared_ptr<const Tree>;

  static TreeRef Leaf(const Bearer& bearer, size_t hash, TreeRef next = nullptr);
  static TreeRef Union(const TreeRef& a, const TreeRef& b);
  static TreeRef JoinLeaves(const TreeRef& a, const TreeRef& b);
  static Bearer Merge(const Bearer& a, const Bearer& b);
  static void CheckRoles(const Bearer& bearer);
  const Bearer* Find(std::string_view name) const;
  void Put(const Bearer& bearer);
  bool Enter(const Vertex* vertex);
  void NoteRoles(const Vertex* reader);

  TreeRef names_;
  std::map<std::string, int> counters_;  // by the text before a counter: all names below this one are borne
};

}  // namespace mxtrain
