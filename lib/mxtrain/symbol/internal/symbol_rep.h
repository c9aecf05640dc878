// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a Symbol points to. Private to symbol/.
#include <mutex>
#include <optional>

#include "mxtrain/symbol/internal/scope.h"
#include "mxtrain/symbol/internal/vertex.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain {

struct Symbol::Rep {
  // `scope` is that of `edges`; if absent it is computed on first use.
  explicit Rep(std::vector<Edge> edges) : heads(std::move(edges)) {}
  Rep(std::vector<Edge> edges, Scope scope) : heads(std::move(edges)), scope_(std::move(scope)) {}
  const std::vector<Edge> heads;

  const Scope& scope() const {
    std::call_once(scoped_, [this] {
      if (!scope_) scope_.emplace().Add(heads);
    });
    return *scope_;
  }

  // The laid-out heads, computed once by the first thread that asks.
  const Graph& graph() const {
    std::call_once(laid_out_, [this] { graph_ = LayOut(heads); });
    return graph_;
  }

  // The name of a head's vertex in this symbol.
  const std::string& NameOf(size_t head) const {
    if (!scope().has_renamed()) return heads[head].vertex->node.name;
    const NodeEntry entry = graph().heads[head];
    return graph().nodes[static_cast<size_t>(entry.node)].name;
  }

 private:
  mutable std::once_flag laid_out_, scoped_;
  mutable Graph graph_;
  mutable std::optional<Scope> scope_;
};

}  // namespace mxtrain
