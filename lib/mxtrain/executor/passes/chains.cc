// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/internal/chains.h"

#include <algorithm>

namespace mxtrain::executor {

ChainMatcher::ChainMatcher(const ExecGraph& graph, const BindRequest& request)
    : graph_(graph),
      request_(request),
      readers_(CountReaders(graph)),
      claimed_(graph.nodes.size()) {}

std::optional<Chain> ChainMatcher::Match(const std::vector<FusePattern::Link>& links,
                                         int last) const {
  Chain chain;
  if (!Extend(links, links.size() - 1, last, &chain)) return std::nullopt;
  std::reverse(chain.ids.begin(), chain.ids.end());
  std::reverse(chain.through.begin(), chain.through.end());
  return chain;
}

void ChainMatcher::Claim(const Chain& chain) {
  for (int id : chain.ids) claimed_[id] = true;
}

bool ChainMatcher::ShowsMore(int id) const {
  return std::any_of(readers_[id].begin() + 1, readers_[id].end(),
                     [](int readers) { return readers > 0; });
}

// Adds node `id` as the given link, then those before it, from last to first.
bool ChainMatcher::Extend(const std::vector<FusePattern::Link>& links, size_t link, int id,
                          Chain* chain) const {
  const ExecNode& node = graph_.nodes[id];
  if (node.kind != Node::Kind::kForward || node.op->TypeString() != links[link].op || claimed_[id])
    return false;
  if (link + 1 < links.size() &&
      (!MayVanish(id) || node.group != graph_.nodes[chain->ids.front()].group))
    return false;
  chain->ids.push_back(id);
  if (link == 0) return true;
  const int inputs = links[link].any_input ? node.num_args : std::min(node.num_args, 1);
  for (int i = 0; i < inputs; ++i) {
    if (node.inputs[i].index != 0) continue;
    chain->through.push_back(i);
    if (Extend(links, link - 1, node.inputs[i].node, chain)) return true;
    chain->through.pop_back();
  }
  chain->ids.pop_back();
  return false;
}

// An operator read only by the next one of the chain, and not monitored.
bool ChainMatcher::MayVanish(int id) const {
  if (readers_[id].empty() || readers_[id][0] != 1 || ShowsMore(id)) return false;
  for (const NodeEntry& head : graph_.heads) {
    if (head.node == id) return false;
  }
  return std::find(request_.monitored.begin(), request_.monitored.end(), graph_.nodes[id].name) ==
         request_.monitored.end();
}

}  // namespace mxtrain::executor
