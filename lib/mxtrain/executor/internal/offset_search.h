// SPDX-License-Identifier: Apache-2.0
#pragma once
// An exact search for offsets under a given arena size, in the manner of MiniMalloc (Moffitt,
// ASPLOS 2023). Sound and complete: if it finds no solution, none exists. Bounded by counted work,
// not by time, so the answer is the same on every machine.
#include <cstdint>
#include <span>
#include <vector>

namespace mxtrain::executor {

// An item to place, live at positions [first, last], inclusive. `bytes`: a positive multiple of the
// alignment.
struct SearchItem {
  int64_t bytes = 0;
  int first = 0, last = 0;
};

class OffsetSearch {
 public:
  enum class Outcome { kFound, kImpossible, kOutOfWork };

  explicit OffsetSearch(std::span<const SearchItem> items);

  // Searches for offsets with every item below `capacity`. `order` ranks all items: among
  // candidates for the same offset the first is tried first. Subtracts its work from `*work` and
  // gives up at zero; one unit is a visit to one item or section.
  Outcome Run(std::span<const int> order, int64_t capacity, int64_t* work);
  const std::vector<int64_t>& offsets() const { return offset_; }  // by item, after kFound

 private:
  struct Item {
    int64_t bytes;
    int first, last;    // sections: maximal intervals with a constant set of live items
    int64_t floor = 0;  // end of the highest placed item live with it; once placed, its offset
  };

  // An undo record: the rank of an item that was placed, or whose floor was raised from `floor`.
  static constexpr int64_t kPlaced = -1;
  struct Undo {
    int rank;
    int64_t floor;
  };

  Outcome Solve(std::span<const int> waiting, int64_t last_offset, int last_rank);
  Outcome SolveGroup(std::span<const int> group, int last, int64_t last_offset, int last_rank);
  bool Hopeless(std::span<const int> group, int last, int64_t last_offset);
  void Put(int rank, std::span<const int> rest);
  void TakeBack(size_t mark);

  std::vector<SearchItem> given_;  // by item, in sections
  std::vector<int64_t> offset_;
  // Of the run:
  std::vector<Item> items_;      // by rank
  std::vector<int64_t> left_;    // by section: bytes not placed yet
  std::vector<int64_t> lowest_;  // scratch of Hopeless, by section
  std::vector<Undo> undo_;
  int64_t capacity_ = 0;
  int64_t* work_ = nullptr;
};

}  // namespace mxtrain::executor
