// SPDX-License-Identifier: Apache-2.0
#pragma once
// The calls of a thread that depend on attached arrays, as a graph. Private to this module; belongs
// to one thread.
//
// An array is not a value: it may be overwritten, in place or in part. So the tape knows for each
// allocation that it has seen which value each region of it holds now. The version of the engine's
// variable tells whether anything else has written the allocation since the tape last looked.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mxtrain/autograd/internal/state.h"
#include "mxtrain/operator/imperative.h"

namespace mxtrain::autograd {

// An output of a node of the tape; node < 0: none.
struct Value {
  int node = -1, output = 0;
  explicit operator bool() const { return node >= 0; }
};

// The inputs of a node come before it on the tape.
struct TapeNode {
  // kVariable: an attached array. kConstant: any other array that a call read. kCall: an operator.
  enum class Kind : uint8_t { kVariable, kConstant, kCall };
  Kind kind = Kind::kCall;

  std::string op;  // of kCall
  Kwargs kwargs;
  std::vector<Value> in;
  std::vector<NDArray> aux;  // auxiliary states, which Backward changes
  // Which one this is of the calls of `op` that draw random numbers; -1: it draws none.
  int draw = -1;

  std::shared_ptr<Variable> variable;  // of kVariable
  NDArray array;                       // of kVariable and kConstant; of the latter maybe a copy
  // Of the engine's variable of `array`, when that held the elements that were read.
  uint64_t version = 0;
  // kConstant: a recorded result was in its memory, and what has become of it is unknown.
  bool mixed = false;
};

class Tape {
 public:
  explicit Tape(State& state) : state_(state) {}

  State& state() const { return state_; }
  Runtime& runtime() const { return state_.runtime(); }
  const std::vector<TapeNode>& nodes() const { return nodes_; }

  // The random numbers of its calls, which Backward draws again.
  const std::optional<RandomState>& random() const { return random_; }

  // As of CallListener.
  bool BeforeCall(const InvokedCall& call);
  std::optional<CallDraws> DrawsOf(const InvokedCall& call);
  void AfterCall(const InvokedCall& call);
  // The recorded result that the array holds now, or a view of it; none if it holds something else.
  Value ResultIn(const NDArray& array);

 private:
  // A part of an allocation and the value that it holds; none: a recorded result was partly
  // overwritten, or written by what is not recorded.
  struct Region {
    NDArray array;
    Value value;
    bool derived = false;  // a view of another region, with operators that compute it
  };
  struct Memory {
    uint64_t version = 0;  // when the tape last looked
    std::vector<Region> regions;
  };
  // What AfterCall needs of a recorded call.
  struct Pending {
    std::vector<Value> in;
    std::vector<Value> before;  // the outputs of a call that adds to them
    int draw = -1;              // as of TapeNode
  };

  bool IsConstant(const Region& region) const;
  Value Add(TapeNode node);
  Value AddCall(std::string op, Kwargs kwargs, std::vector<Value> in);
  Value AddVariable(std::shared_ptr<Variable> variable);
  // Null if nothing is known of the allocation and nothing of it is attached.
  Memory* Look(const NDArray& array);
  void NoteForeignWrite(Memory* memory, uint64_t version);
  void Advance(Memory* memory, uint64_t version);
  bool Depends(const NDArray& array);
  // A view of the value of a region; none if no operators compute it.
  Value ViewOf(const Region& region, const NDArray& part);
  // The recorded value or variable in the array; none: neither, or `mixed`.
  Value Known(Memory* memory, const NDArray& array, bool* mixed);
  Value Read(const NDArray& array);
  void KeepConstants(const InvokedCall& call, const NDArray& written);
  void Write(const NDArray& array, Value value);

  State& state_;
  std::vector<TapeNode> nodes_;
  // The regions own their allocations, so no variable of the engine is used again meanwhile.
  std::unordered_map<engine::VarHandle, Memory> memory_;
  std::optional<Pending> pending_;
  std::optional<RandomState> random_;  // of the first recorded call that draws, and all others
  std::map<std::string, int, std::less<>> draws_;  // recorded calls that draw, by operator
};

// The name under which a recorded call draws, and its layer in the program that Backward runs.
std::string NameOfDraw(std::string_view op, int draw);

}  // namespace mxtrain::autograd
