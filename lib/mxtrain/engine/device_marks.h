#pragma once
// Work that was issued on streams and may not be done. Streams do what they are given in order, so of each stream the latest matters.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace mxtrain::engine {

class DeviceLane;

// All that was issued on a lane up to a ticket; ticket 0 is nothing.
struct DeviceMark {
  DeviceLane* lane = nullptr;
  uint64_t ticket = 0;
};

class DeviceMarks {
 public:
  void Add(DeviceMark mark);  // leaves out what is known to be done
  void Add(const DeviceMarks& other) {
    for (const DeviceMark& mark : other.marks_) Add(mark);
  }
  // Those of lanes that have failed.
  void DropFailed();
  void Clear() { marks_.clear(); }
  bool empty() const { return marks_.empty(); }
  int size() const { return static_cast<int>(marks_.size()); }
  auto begin() const { return marks_.begin(); }
  auto end() const { return marks_.end(); }

 private:
  std::vector<DeviceMark> marks_;  // a lane once
};

}  // namespace mxtrain::engine
