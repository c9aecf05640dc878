// SPDX-License-Identifier: Apache-2.0
#pragma once
// The steps of a chain on one block of its arrays. A block is a run of elements, or of whole rows
// if a step needs rows.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "mxtrain/operator/broadcast_space.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operators/elementwise_chain/elementwise_chain.h"

namespace mxtrain::elementwise_chain {

// How the elements of a value belong to those of the output.
enum class Extent : uint8_t {
  kWhole,     // one to one
  kColumn,    // one for each row
  kRepeated,  // an argument that is repeated along some axes: copied to one of the whole shape
};

struct StepPlan {
  Plan plan;
  std::vector<int> in;  // values
  std::vector<bool> has_gradient;
  // Of inputs: results that nothing else reads and whose gradient is that of this step's result.
  std::vector<bool> passes;
  // Bytes of temporary space for each request; of `whole` also enough for `rest`.
  std::vector<int64_t> space;
  // A Dropout, as the product of its input and its factors; the gradient is that of the head.
  bool scales = false;
};
// The steps for blocks of one length.
using StepPlans = std::vector<StepPlan>;

// What is known before a run. Values are numbered as in the chain; behind the results follow the
// factors of the Dropout, if it drops.
struct ChainPlan {
  DType type = DType::kUnknown;
  int num_args = 0, num_steps = 0;
  std::vector<Extent> extent;                        // of values
  std::vector<std::optional<BroadcastSpace<1>>> at;  // of repeated values: in the whole shape
  std::vector<int64_t> sizes;                        // of repeated values, else 0: elements
  std::vector<int> array;     // of values: the number of the array; -1: an argument, read in place
  std::vector<bool> read;     // of values: read by gradients
  std::optional<float> keep;  // probability of keeping an element, if the Dropout drops
  int same = -1;              // the step that is the identity: a Dropout that does not drop
  int64_t elements = 0;       // of the whole, with padding
  int64_t row = 0;            // elements; 0: no step needs rows
  int64_t block = 0;          // elements
  int64_t stride = 0;         // bytes from one array of a block to the next
  int64_t space = 0;          // bytes of temporary space for any step
  StepPlans whole, rest;      // the last block may be shorter

  int num_values() const { return static_cast<int>(extent.size()); }
  int factors() const { return keep ? num_args + num_steps : -1; }
  int64_t blocks() const { return (elements + block - 1) / block; }
  int64_t count(int64_t begin) const { return std::min(block, elements - begin); }
  // Of a value's part of a block.
  TShape BlockShape(int value, int64_t count) const;
  // Arrays of a block: those of values; in backward also their gradients, except the last result's,
  // and one for a gradient that is added to another.
  int forward_arrays() const {
    return static_cast<int>(array.size() -
                            static_cast<size_t>(std::count(array.begin(), array.end(), -1)));
  }
  int backward_arrays() const { return forward_arrays() + num_args + num_steps; }
  // Bytes that a runner needs.
  int64_t ForwardRoom() const { return forward_arrays() * stride + space; }
  int64_t BackwardRoom() const { return backward_arrays() * stride + space; }
};

// The arrays of a run. Only Forward has `out_req`; only Backward the members after it.
struct Run {
  const OpContext& ctx;
  std::span<const TBlob> in;
  TBlob out;
  OpReqType out_req = OpReqType::kWriteTo;
  TBlob head = {};
  std::span<const OpReqType> req = {};
  std::span<const TBlob> in_grad = {};
};

// Runs blocks on one thread.
class BlockRunner {
 public:
  // `plan` must outlive it.
  explicit BlockRunner(const ChainPlan& plan);

  // Before the first block of a run. `room`: ForwardRoom or BackwardRoom.
  void Start(const Run& run, char* room);
  void Forward(const Run& run, int64_t begin);
  // The gradients of repeated arguments are added to `sums`, all arguments one after another.
  void Backward(const Run& run, int64_t begin, double* sums);

 private:
  struct Step {
    const StepPlan* plan;
    std::unique_ptr<Operator> whole, rest;
    std::vector<Resource> requested;
  };

  char* ArrayAt(int number) const { return room_ + number * plan_.stride; }
  char* ArrayOf(int value) const { return ArrayAt(plan_.array[static_cast<size_t>(value)]); }
  TBlob BlockOf(void* data, int value, int64_t count) const;
  // The part of an array of the extent of `value`.
  TBlob PartOf(const TBlob& array, int value, int64_t begin, int64_t count) const;
  Operator& For(Step& step, int64_t count) const {
    return count == plan_.block ? *step.whole : *step.rest;
  }
  bool WritesDirectly(const Run& run) const;
  void Load(const Run& run, bool backward, int64_t begin, int64_t count);
  void LoadRepeated(int value, const void* array, int64_t begin, int64_t count);
  void DrawFactors(const Run& run, int64_t begin, int64_t count);
  void Compute(const Run& run, size_t s, int64_t count);
  void StepBack(const Run& run, size_t s, int64_t count);
  void FindUseful(std::span<const OpReqType> req);
  void Add(const TBlob& from, const TBlob& to) const;

  const ChainPlan& plan_;
  std::vector<Step> steps_;
  char* room_ = nullptr;

  // Of the current block.
  std::vector<TBlob> values_, gradients_, in_, in_grad_;
  std::vector<char> given_;   // the value's gradient has been assigned
  std::vector<char> useful_;  // some requested gradient follows from the value's
  std::vector<OpReqType> req_;
  struct Held {
    int64_t phase = -1, count = 0;  // of what the array of a repeated value holds
  };
  std::vector<Held> held_;
};

}  // namespace mxtrain::elementwise_chain
