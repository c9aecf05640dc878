// SPDX-License-Identifier: Apache-2.0
#include "tests/support/shared_sums.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "mxtrain/base/error.h"

namespace mxtrain::test {
namespace {

constexpr int kMembers = 8;
constexpr size_t kPartBytes = size_t{1} << 16;  // that travel at once

template <typename T>
void Add(const char* from, int64_t n, T* sum) {
  for (int64_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, from + i * static_cast<int64_t>(sizeof value), sizeof value);
    sum[i] = static_cast<T>(static_cast<float>(sum[i]) + static_cast<float>(value));
  }
}

}  // namespace

// Zeros are its initial state. A part is written before a meeting, and read between that and the
// next.
struct SharedSums::Board {
  struct Member {
    std::atomic<uint64_t> meetings;  // this member has come to; counts from 1
    int64_t n, type;                 // what it sums
    char part[kPartBytes];
  };
  std::atomic<int> here, finished, left;
  std::atomic<bool> mismatch;
  Member members[kMembers];
};

std::string SharedSums::NewName() {
  static std::atomic<int> count = 0;
  return format("/mxtrain-test-{}-{}", getpid(), ++count);
}

SharedSums::SharedSums(const std::string& name, int rank, int size)
    : name_(name), rank_(rank), size_(size) {
  MXTRAIN_ASSERT(size <= kMembers && rank < size);
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  void* memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, sizeof(Board)) == 0)
    memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  if (memory == MAP_FAILED)
    Throw(ErrorKind::kFileSystem, "no shared memory {}: {}", name, std::strerror(errno));
  board_ = static_cast<Board*>(memory);
  ++board_->here;
}

SharedSums::~SharedSums() {
  shm_unlink(name_.c_str());  // all have opened it, or will not
  munmap(board_, sizeof(Board));
}

bool SharedSums::complete() const {
  return board_->here == size_;
}
bool SharedSums::mismatch() const {
  return board_->mismatch;
}

void SharedSums::Finish() {
  ++board_->finished;
}
bool SharedSums::finished() const {
  return board_->finished == size_;
}

void SharedSums::Leave(std::chrono::seconds longest) {
  ++board_->left;
  const auto end = std::chrono::steady_clock::now() + longest;
  while (board_->left < board_->here && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// False: aborted.
bool SharedSums::Meet() {
  ++meetings_;
  board_->members[rank_].meetings = meetings_;
  for (int r = 0; r < size_; ++r) {
    while (board_->members[r].meetings < meetings_) {
      if (aborted_) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  return true;
}

void SharedSums::AllReduce(void* data, int64_t n, DType type) {
  MXTRAIN_ASSERT(type == DType::kFloat32 || type == DType::kBfloat16);
  if (aborted_) return;
  Board::Member& own = board_->members[rank_];
  own.n = n;
  own.type = static_cast<int64_t>(type);
  const int64_t of_part = static_cast<int64_t>(kPartBytes) / SizeOf(type);
  for (int64_t begin = 0; begin < n; begin += of_part) {
    const int64_t count = std::min(of_part, n - begin);
    char* const here = static_cast<char*>(data) + begin * SizeOf(type);
    const auto bytes = static_cast<size_t>(count * SizeOf(type));
    std::memcpy(own.part, here, bytes);
    if (!Meet()) return;
    for (int r = 0; r < size_; ++r) {
      const Board::Member& other = board_->members[r];
      if (other.n != own.n || other.type != own.type) board_->mismatch = true;
    }
    if (board_->mismatch) return;
    std::memcpy(here, board_->members[0].part, bytes);
    for (int r = 1; r < size_; ++r) {
      type == DType::kFloat32
          ? Add(board_->members[r].part, count, reinterpret_cast<float*>(here))
          : Add(board_->members[r].part, count, reinterpret_cast<bfloat16*>(here));
    }
    if (!Meet()) return;
  }
}

}  // namespace mxtrain::test
