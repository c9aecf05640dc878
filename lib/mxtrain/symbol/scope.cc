// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/symbol/internal/scope.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "mxtrain/base/post_order.h"
#include "mxtrain/base/text.h"

namespace mxtrain {

// A leaf has bit -1; its `zero` is the next leaf of the same hash. A branch holds the hashes that
// agree with `hash` above `bit`, separated by that bit.
struct Scope::Tree {
  size_t hash;
  int bit;
  TreeRef zero, one;
  Bearer bearer;
  bool has_shared;  // a bearer below

  const TreeRef& Side(size_t key) const { return key >> bit & 1 ? one : zero; }
};

namespace {

std::string_view NameOf(const Vertex* vertex) {
  return vertex->node.name;
}

size_t HashOf(std::string_view name) {
  return std::hash<std::string_view>()(name);
}
size_t HashOf(const Vertex* vertex) {
  // The low bits of addresses are equal, and std::hash may be the identity.
  return std::hash<const Vertex*>()(vertex) * size_t{0x9e3779b97f4a7c15};
}

// The highest bit in which two hashes differ; -1: they are equal.
int HighestDifference(size_t a, size_t b) {
  return static_cast<int>(std::bit_width(a ^ b)) - 1;
}

}  // namespace

void Scope::CheckRoles(const Bearer& bearer) {
  if (!bearer.argument_of || !bearer.auxiliary_of) return;
  Throw(ErrorKind::kConfig,
        "'{}' is an auxiliary state of {} and an argument of {}; it can only be one of them",
        NameOf(bearer.vertex), DescribeNode(bearer.auxiliary_of->node),
        DescribeNode(bearer.argument_of->node));
}

bool Scope::has_renamed() const {
  return names_ && names_->has_shared;
}

bool Scope::SameSlot(const Bearer& a, const Bearer& b) {
  if (a.by_address != b.by_address) return false;
  return a.by_address ? a.vertex == b.vertex : NameOf(a.vertex) == NameOf(b.vertex);
}

Scope::Bearer Scope::Merge(const Bearer& a, const Bearer& b) {
  if (a.vertex != b.vertex && (a.vertex->generated || b.vertex->generated)) {
    Bearer kept = a.vertex->generated ? b : a;
    kept.shared = true;
    return kept;
  }
  if (a.vertex != b.vertex) {
    Throw(ErrorKind::kConfig,
          "two nodes have the name '{}': {} and {}; give one of them another name, or use one "
          "symbol in both places",
          NameOf(a.vertex), DescribeNode(a.vertex->node), DescribeNode(b.vertex->node));
  }
  Bearer merged = a;
  if (!merged.argument_of) merged.argument_of = b.argument_of;
  if (!merged.auxiliary_of) merged.auxiliary_of = b.auxiliary_of;
  merged.shared = a.shared || b.shared;
  CheckRoles(merged);
  return merged;
}

Scope::TreeRef Scope::Leaf(const Bearer& bearer, size_t hash, TreeRef next) {
  const bool has_shared = bearer.shared || (next && next->has_shared);
  return std::make_shared<const Tree>(Tree{hash, -1, std::move(next), nullptr, bearer, has_shared});
}

// Two lists of leaves of one hash; the first of `b`, then the rest.
Scope::TreeRef Scope::JoinLeaves(const TreeRef& a, const TreeRef& b) {
  if (!b) return a;
  if (!a) return b;
  if (!SameSlot(a->bearer, b->bearer)) {
    // Lists longer than one are 64-bit hash collisions.
    return JoinLeaves(Leaf(a->bearer, a->hash, JoinLeaves(a->zero, Leaf(b->bearer, b->hash))),
                      b->zero);
  }
  const Bearer merged = Merge(a->bearer, b->bearer);
  const TreeRef rest = JoinLeaves(a->zero, b->zero);
  if (merged == a->bearer && rest == a->zero) return a;
  if (merged == b->bearer && rest == b->zero) return b;
  return Leaf(merged, a->hash, rest);
}

// Returns `a` or `b` itself if nothing is added to it: shared parts stay shared.
Scope::TreeRef Scope::Union(const TreeRef& a, const TreeRef& b) {
  if (!b || a == b) return a;
  if (!a) return b;
  const int difference = HighestDifference(a->hash, b->hash);
  const auto branch = [](int bit, size_t hash, TreeRef zero, TreeRef one) {
    const bool has_shared = zero->has_shared || one->has_shared;
    return std::make_shared<const Tree>(
        Tree{hash, bit, std::move(zero), std::move(one), {}, has_shared});
  };
  if (difference > std::max(a->bit, b->bit)) {
    return a->hash >> difference & 1 ? branch(difference, a->hash, b, a)
                                     : branch(difference, a->hash, a, b);
  }
  if (a->bit < 0 && b->bit < 0) return JoinLeaves(a, b);
  // The branch at the higher bit holds the other tree on one side; branches at the same bit merge
  // side by side.
  const int bit = std::max(a->bit, b->bit);
  const auto side = [bit](const TreeRef& tree, size_t which) -> TreeRef {
    if (tree->bit == bit) return which ? tree->one : tree->zero;
    return (tree->hash >> bit & 1) == which ? tree : nullptr;
  };
  TreeRef zero = Union(side(a, 0), side(b, 0)), one = Union(side(a, 1), side(b, 1));
  for (const TreeRef& tree : {a, b}) {
    if (tree->bit == bit && zero == tree->zero && one == tree->one) return tree;
  }
  return branch(bit, a->hash, std::move(zero), std::move(one));
}

template <typename Matches>
const Scope::Bearer* Scope::Search(size_t hash, Matches matches) const {
  const Tree* tree = names_.get();
  while (tree && tree->bit >= 0) tree = tree->Side(hash).get();
  while (tree && !matches(tree->bearer)) tree = tree->zero.get();
  return tree ? &tree->bearer : nullptr;
}

const Scope::Bearer* Scope::Find(std::string_view name) const {
  return Search(HashOf(name), [name](const Bearer& bearer) {
    return !bearer.by_address && NameOf(bearer.vertex) == name;
  });
}

const Scope::Bearer* Scope::Find(const Vertex* vertex) const {
  const bool by_address = vertex->generated != nullptr;
  return Search(by_address ? HashOf(vertex) : HashOf(NameOf(vertex)), [=](const Bearer& bearer) {
    return bearer.vertex == vertex && bearer.by_address == by_address;
  });
}

void Scope::Put(const Bearer& bearer) {
  names_ = Union(names_, Leaf(bearer, bearer.by_address ? HashOf(bearer.vertex)
                                                        : HashOf(NameOf(bearer.vertex))));
}

void Scope::Join(const Scope& other) {
  names_ = Union(names_, other.names_);
  for (const auto& [hint, counter] : other.counters_) {
    int& known = counters_[hint];
    known = std::max(known, counter);
  }
}

void Scope::Add(std::span<const Edge> roots) {
  std::vector<const Vertex*> vertices;
  for (const Edge& edge : roots) vertices.push_back(edge.vertex.get());
  PostOrder(
      vertices, [](const Vertex* v) { return v->inputs.size(); },
      [](const Vertex* v, size_t i) { return v->inputs[i].vertex.get(); },
      [this](const Vertex* v) { return Enter(v); }, [this](const Vertex* v) { NoteRoles(v); });
}

bool Scope::Enter(const Vertex* vertex) {
  if (Find(vertex)) return false;
  Put({.vertex = vertex});
  if (vertex->generated) Put({.vertex = vertex, .by_address = true});
  return true;
}

void Scope::NoteRoles(const Vertex* reader) {
  for (size_t i = 0; i < reader->inputs.size(); ++i) {
    const Vertex* input = reader->inputs[i].vertex.get();
    const bool auxiliary = IsAuxiliary(*reader, i);
    if (auxiliary && !input->node.is_variable()) {
      Throw(ErrorKind::kConfig, "{}: an auxiliary state is a variable of its own, but {} was given",
            DescribeNode(reader->node), DescribeNode(input->node));
    }
    if (!input->node.is_variable()) continue;
    const Bearer* known = Find(input);
    if (auxiliary ? known->auxiliary_of : known->argument_of) continue;
    Put({.vertex = input,
         .argument_of = auxiliary ? nullptr : reader,
         .auxiliary_of = auxiliary ? reader : nullptr,
         .by_address = input->generated != nullptr});
  }
}

std::string Scope::FreeName(std::string_view op) {
  const std::string hint = Lower(op);
  for (int& counter = counters_[hint];; ++counter) {
    std::string name = hint + std::to_string(counter);
    if (!Has(name)) return name;
  }
}

}  // namespace mxtrain
