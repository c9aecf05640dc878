#pragma once
// An exact search for offsets under a given arena size, in the manner of MiniMalloc (Moffitt, ASPLOS 2023). What it finds fits; where it
// ends without a find, nothing fits. It is bounded by counted work, not by time, so that its answer is the same on every machine.
#include <cstdint>
#include <span>
#include <vector>

namespace mxtrain::executor {

// What the search places: alive at positions [first, last], inclusive. `bytes` are a multiple of the alignment and not zero.
struct SearchItem {
  int64_t bytes = 0;
  int first = 0, last = 0;
};

class OffsetSearch {
 public:
  enum class Outcome { kFound, kImpossible, kOutOfWork };

  explicit OffsetSearch(std::span<const SearchItem> items);

  // Looks for offsets with every item below `capacity`. `order` ranks all items; of those that may lie equally low, the first is tried
  // first. Takes what it does off `*work` and gives up when that is used up; one unit is a look at one item or at one section.
  Outcome Run(std::span<const int> order, int64_t capacity, int64_t* work);
  const std::vector<int64_t>& offsets() const { return offset_; }  // by item, after kFound

 private:
  struct Item {
    int64_t bytes;
    int first, last;    // sections: stretches of time of which one moment sees all that are alive in them
    int64_t floor = 0;  // end of the highest of the placed ones that are alive with it; once placed, where it lies
  };

  // A step of the search, to take back: the rank of an item that was placed, or whose floor was raised from `floor`.
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
