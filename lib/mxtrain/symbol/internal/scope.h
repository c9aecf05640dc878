// SPDX-License-Identifier: Apache-2.0
#pragma once
// The names reachable from some edges and the vertices that have them. With it a symbol keeps its
// invariants (unique names, except generated ones, which are made unique when the graph is laid
// out; every variable is an argument or an auxiliary state, not both) without walking the whole
// graph for every new node. Private to symbol/.
//
// A value, immutable when shared: a mergeable map over the hashes of names (Okasaki and Gill, "Fast
// mergeable integer maps", 1998) whose versions share all but O(log n) nodes. A merge skips what
// two scopes share, so one more layer costs the logarithm of the net, whatever its branches.
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "mxtrain/symbol/internal/vertex.h"

namespace mxtrain {

class Scope {
 public:
  // Both throw kConfig with both owners of a name, or both readers of a variable, and their places.
  void Add(std::span<const Edge> roots);  // visits the vertices that are not in scope yet
  void Join(const Scope& other);          // O(log n) for each name that only one of the two has

  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  // Whether two vertices have one name, of which at least one is generated.
  bool has_renamed() const;
  // `op` in lower case and the least counter from 0 whose name is free in the scope.
  std::string FreeName(std::string_view op);

 private:
  // A name has a bearer. Vertices of generated names, of which several may have one name, have one
  // each besides, found by their address, which holds the readers.
  struct Bearer {
    const Vertex* vertex = nullptr;
    const Vertex* argument_of = nullptr;   // a reader, if it is a variable read as an argument
    const Vertex* auxiliary_of = nullptr;  // a reader, if it is an auxiliary state
    bool by_address = false;
    bool shared = false;  // the name of another vertex too
    friend bool operator==(const Bearer&, const Bearer&) = default;
  };
  struct Tree;
  using TreeRef = std::shared_ptr<const Tree>;

  static TreeRef Leaf(const Bearer& bearer, size_t hash, TreeRef next = nullptr);
  static TreeRef Union(const TreeRef& a, const TreeRef& b);
  static TreeRef JoinLeaves(const TreeRef& a, const TreeRef& b);
  static Bearer Merge(const Bearer& a, const Bearer& b);
  static bool SameSlot(const Bearer& a, const Bearer& b);
  static void CheckRoles(const Bearer& bearer);
  template <typename Matches>
  const Bearer* Search(size_t hash, Matches matches) const;
  const Bearer* Find(std::string_view name) const;
  const Bearer* Find(const Vertex* vertex) const;  // the bearer that holds its readers
  void Put(const Bearer& bearer);
  bool Enter(const Vertex* vertex);
  void NoteRoles(const Vertex* reader);

  TreeRef names_;
  std::map<std::string, int> counters_;  // by the text before a counter: all lower names are taken
};

}  // namespace mxtrain
