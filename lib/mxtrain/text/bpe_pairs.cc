// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/bpe_pairs.h"

#include <algorithm>
#include <utility>

namespace mxtrain::text {

void BpePairs::AddWord(const Ids& tokens, int64_t count) {
  const auto word = static_cast<uint32_t>(words_.size());
  words_.push_back({symbols_.size(), tokens.size(), count});
  symbols_.insert(symbols_.end(), tokens.begin(), tokens.end());
  for (size_t i = 0; i + 1 < tokens.size(); ++i) Count({tokens[i], tokens[i + 1]}, count, word);
}

uint32_t BpePairs::StateOf(TokenPair pair) {
  uint64_t& index = index_.At(uint64_t{pair.left} << 32 | pair.right);
  if (index == IdMap::kNone) {
    index = states_.size();
    states_.push_back({pair, 0, {}});
  }
  return static_cast<uint32_t>(index);
}

// A change below 0 is an occurrence that is gone.
void BpePairs::Count(TokenPair pair, int64_t change, uint32_t word) {
  const uint32_t index = StateOf(pair);
  PairState& state = states_[index];
  state.count += change;
  if (change < 0) return;
  if (state.found.empty()) found_.push_back(index);
  if (state.found.empty() || state.found.back() != word) state.found.push_back(word);
}

bool BpePairs::ComesLater(const Queued& a, const Queued& b) const {
  if (a.count != b.count) return a.count < b.count;
  const TokenPair &x = states_[a.state].pair, &y = states_[b.state].pair;
  return std::pair(x.left, x.right) > std::pair(y.left, y.right);
}

void BpePairs::Push(Queued queued) {
  heap_.push_back(std::move(queued));
  std::push_heap(heap_.begin(), heap_.end(),
                 [this](const Queued& a, const Queued& b) { return ComesLater(a, b); });
}

void BpePairs::QueueFound() {
  for (const uint32_t index : found_) {
    PairState& state = states_[index];
    std::vector<uint32_t> words = std::exchange(state.found, {});
    if (state.count > 0) Push({static_cast<uint64_t>(state.count), index, std::move(words)});
  }
  found_.clear();
}

std::optional<TokenPair> BpePairs::TakeBest(int64_t minimum_count) {
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(),
                  [this](const Queued& a, const Queued& b) { return ComesLater(a, b); });
    Queued top = std::move(heap_.back());
    heap_.pop_back();
    const auto now = static_cast<uint64_t>(states_[top.state].count);
    if (top.count != now) {
      top.count = now;
      Push(std::move(top));
      continue;
    }
    if (now < 1 || now < static_cast<uint64_t>(minimum_count)) return std::nullopt;
    taken_ = std::move(top.words);
    return states_[top.state].pair;
  }
  return std::nullopt;
}

void BpePairs::Merge(TokenPair pair, TokenId merged) {
  for (const uint32_t word : taken_) MergeInWord(pair, merged, word);
  QueueFound();
}

// From left to right; what is left of a merge is already merged.
void BpePairs::MergeInWord(TokenPair pair, TokenId merged, uint32_t index) {
  Word& word = words_[index];
  TokenId* const symbols = symbols_.data() + word.begin;
  size_t kept = 0;
  for (size_t at = 0; at < word.length; ++at, ++kept) {
    if (at + 1 >= word.length || symbols[at] != pair.left || symbols[at + 1] != pair.right) {
      symbols[kept] = symbols[at];
      continue;
    }
    if (kept > 0) {
      Count({symbols[kept - 1], pair.left}, -word.count, index);
      Count({symbols[kept - 1], merged}, word.count, index);
    }
    if (at + 2 < word.length) {
      Count({pair.right, symbols[at + 2]}, -word.count, index);
      Count({merged, symbols[at + 2]}, word.count, index);
    }
    symbols[kept] = merged;
    ++at;
  }
  word.length = kept;
}

}  // namespace mxtrain::text
