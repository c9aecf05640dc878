// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/bpe_model.h"

#include <algorithm>

#include "mxtrain/text/internal/byte_alphabet.h"
#include "mxtrain/text/internal/utf8.h"

namespace mxtrain::text {
namespace {

// Up to here a scan of all pairs for each merge is faster than a heap.
constexpr size_t kMostScanned = 64;
constexpr uint32_t kNobody = ~uint32_t{0};

// The lowest rank first, of equals the leftmost; std heaps have the largest on top.
bool ComesLater(const BpeScratch::Candidate& a, const BpeScratch::Candidate& b) {
  return a.merge != b.merge ? a.merge > b.merge : a.place > b.place;
}

}  // namespace

BpeModel::BpeModel(const Vocabulary& vocabulary, const std::vector<Merge>& merges, BpeConfig config)
    : config_(config), merges_(merges.size()) {
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    merges_.At(uint64_t{merge.left} << 32 | merge.right) = uint64_t{rank} << 32 | merge.merged;
  }
  byte_ids_.fill(IdMap::kNone);
  vocabulary.ForEach([&](std::string_view token, TokenId id) {
    if (config_.byte_level) {
      const auto bytes = BytesOfVisible(token);
      if (bytes && bytes->size() == 1) byte_ids_[static_cast<unsigned char>(bytes->front())] = id;
      if (bytes && config_.ignore_merges) whole_.emplace(*bytes, id);
      return;
    }
    if (!token.empty() && DecodeCodePoint(token).bytes == token.size())
      character_ids_.At(DecodeCodePoint(token).value) = id;
    if (config_.ignore_merges) whole_.emplace(token, id);
  });
}

void BpeModel::Encode(std::string_view piece, BpeScratch* scratch, Ids* ids) const {
  if (config_.ignore_merges) {
    const auto whole = whole_.find(std::string(piece));
    if (whole != whole_.end()) return ids->push_back(whole->second);
  }
  Ids& symbols = scratch->symbols;
  symbols.clear();
  config_.byte_level ? BeginBytes(piece, &symbols) : BeginCharacters(piece, &symbols);
  symbols.size() <= kMostScanned ? MergeShort(scratch) : MergeLong(scratch);
  ids->insert(ids->end(), symbols.begin(), symbols.end());
}

void BpeModel::BeginBytes(std::string_view piece, Ids* symbols) const {
  bool fuses = false;
  for (const char c : piece) {
    const uint64_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id != IdMap::kNone)
      symbols->push_back(static_cast<TokenId>(id));
    else if (config_.unknown && !fuses)
      symbols->push_back(*config_.unknown);
    fuses = id == IdMap::kNone && config_.fuse_unknown;
  }
}

void BpeModel::BeginCharacters(std::string_view piece, Ids* symbols) const {
  bool fuses = false;
  ForEachCodePoint(piece, [&](uint32_t c, std::string_view) {
    const uint64_t id = character_ids_.Find(c);
    if (id != IdMap::kNone)
      symbols->push_back(static_cast<TokenId>(id));
    else if (config_.unknown && !fuses)
      symbols->push_back(*config_.unknown);
    fuses = id == IdMap::kNone && config_.fuse_unknown;
  });
}

void BpeModel::MergeShort(BpeScratch* scratch) const {
  Ids& symbols = scratch->symbols;
  std::vector<uint64_t>& merges = scratch->merges;
  merges.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i)
    merges.push_back(MergeOf(symbols[i], symbols[i + 1]));
  while (!merges.empty()) {
    const auto best = std::min_element(merges.begin(), merges.end());
    if (*best == IdMap::kNone) break;
    const auto at = best - merges.begin();
    const auto place = static_cast<size_t>(at);
    symbols[place] = static_cast<TokenId>(*best);
    symbols.erase(symbols.begin() + at + 1);
    merges.erase(best);
    if (place > 0) merges[place - 1] = MergeOf(symbols[place - 1], symbols[place]);
    if (place < merges.size()) merges[place] = MergeOf(symbols[place], symbols[place + 1]);
  }
}

// A merge leaves its symbol at the place of the left one; a candidate whose symbols changed since
// it was queued is dropped.
void BpeModel::MergeLong(BpeScratch* scratch) const {
  Ids& symbols = scratch->symbols;
  std::vector<uint32_t>&previous = scratch->previous, &next = scratch->next;
  std::vector<BpeScratch::Candidate>& heap = scratch->heap;
  const auto count = static_cast<uint32_t>(symbols.size());
  previous.resize(count);
  next.resize(count);
  heap.clear();
  const auto candidate = [&](uint32_t left) {
    const uint32_t right = next[left];
    if (right == kNobody) return false;
    const uint64_t merge = MergeOf(symbols[left], symbols[right]);
    if (merge == IdMap::kNone) return false;
    heap.push_back({merge, left, symbols[left], symbols[right]});
    return true;
  };
  const auto push = [&](uint32_t left) {
    if (candidate(left)) std::push_heap(heap.begin(), heap.end(), ComesLater);
  };
  for (uint32_t i = 0; i < count; ++i) {
    previous[i] = i == 0 ? kNobody : i - 1;
    next[i] = i + 1 == count ? kNobody : i + 1;
  }
  for (uint32_t i = 0; i < count; ++i) candidate(i);
  std::make_heap(heap.begin(), heap.end(), ComesLater);
  constexpr TokenId kGone = ~TokenId{0};
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), ComesLater);
    const BpeScratch::Candidate top = heap.back();
    heap.pop_back();
    const uint32_t left = top.place, right = next[left];
    if (symbols[left] != top.left || right == kNobody || symbols[right] != top.right) continue;
    symbols[left] = static_cast<TokenId>(top.merge);
    symbols[right] = kGone;
    next[left] = next[right];
    if (next[left] != kNobody) previous[next[left]] = left;
    if (previous[left] != kNobody) push(previous[left]);
    push(left);
  }
  std::erase(symbols, kGone);
}

}  // namespace mxtrain::text
