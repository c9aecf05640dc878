// SPDX-License-Identifier: Apache-2.0
#pragma once
// Work issued on streams that may not be done. Streams execute in order, so only the latest mark of
// each stream matters.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace mxtrain::engine {

class DeviceLane;

// All work issued on a lane up to a ticket; ticket 0: none.
struct DeviceMark {
  DeviceLane* lane = nullptr;
  uint64_t ticket = 0;
};

class DeviceMarks {
 public:
  void Add(DeviceMark mark);  // skips work known to be done
  void Add(const DeviceMarks& other) {
    for (const DeviceMark& mark : other.marks_) Add(mark);
  }
  // Drops marks of failed lanes.
  void DropFailed();
  void Clear() { marks_.clear(); }
  bool empty() const { return marks_.empty(); }
  int size() const { return static_cast<int>(marks_.size()); }
  auto begin() const { return marks_.begin(); }
  auto end() const { return marks_.end(); }

 private:
  std::vector<DeviceMark> marks_;  // at most one per lane
};

}  // namespace mxtrain::engine
