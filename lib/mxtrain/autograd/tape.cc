// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/autograd/internal/tape.h"

#include <algorithm>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain::autograd {
namespace {

uint64_t VersionOf(const NDArray& array) {
  return array.runtime().engine().Version(array.var());
}

// Of two parts of one allocation.
int64_t BytesBetween(const NDArray& first, const NDArray& second) {
  return static_cast<const char*>(second.data().data) - static_cast<const char*>(first.data().data);
}

// `part` overlaps `whole`.
bool Holds(const NDArray& whole, const NDArray& part) {
  if (whole.IsWhole() || whole.SameView(part)) return true;
  const int64_t offset = BytesBetween(whole, part);
  return offset >= 0 && offset + part.spec().Bytes() <= whole.spec().Bytes();
}

}  // namespace

std::string NameOfDraw(std::string_view op, int draw) {
  return format("recorded_{}{}", Lower(op), draw);
}

bool Tape::IsConstant(const Region& region) const {
  return region.value &&
         nodes_[static_cast<size_t>(region.value.node)].kind == TapeNode::Kind::kConstant;
}

Value Tape::Add(TapeNode node) {
  nodes_.push_back(std::move(node));
  return {static_cast<int>(nodes_.size()) - 1, 0};
}

Value Tape::AddCall(std::string op, Kwargs kwargs, std::vector<Value> in) {
  TapeNode node;
  node.kind = TapeNode::Kind::kCall;
  node.op = std::move(op);
  node.kwargs = std::move(kwargs);
  node.in = std::move(in);
  return Add(std::move(node));
}

Value Tape::AddVariable(std::shared_ptr<Variable> variable) {
  TapeNode node;
  node.kind = TapeNode::Kind::kVariable;
  node.array = variable->array;
  node.version = VersionOf(variable->array);
  node.variable = std::move(variable);
  return Add(std::move(node));
}

Tape::Memory* Tape::Look(const NDArray& array) {
  const auto found = memory_.find(array.var());
  if (found != memory_.end()) {
    Memory& memory = found->second;
    if (const uint64_t now = VersionOf(array); now != memory.version)
      NoteForeignWrite(&memory, now);
    if (!memory.regions.empty()) return &memory;
    memory_.erase(found);
    return nullptr;
  }
  const auto variables = state_.AttachedTo(array.var());
  if (variables.empty()) return nullptr;
  Memory& memory = memory_[array.var()];
  memory.version = VersionOf(array);
  for (const std::shared_ptr<Variable>& variable : variables)
    memory.regions.push_back({variable->array, AddVariable(variable)});
  return &memory;
}

// Something that the tape does not record wrote to the allocation, somewhere. Attached arrays are
// read anew; constants that were read before fail the check of their version.
void Tape::NoteForeignWrite(Memory* memory, uint64_t version) {
  memory->version = version;
  std::erase_if(memory->regions,
                [this](const Region& region) { return region.derived || IsConstant(region); });
  for (Region& region : memory->regions) {
    if (!region.value) continue;
    const std::shared_ptr<Variable>& variable =
        nodes_[static_cast<size_t>(region.value.node)].variable;
    region.value = variable ? AddVariable(variable) : Value();
  }
}

// After a recorded call: what it did not write still has its elements.
void Tape::Advance(Memory* memory, uint64_t version) {
  memory->version = version;
  for (const Region& region : memory->regions) {
    if (!region.value) continue;
    TapeNode& node = nodes_[static_cast<size_t>(region.value.node)];
    if (node.kind != TapeNode::Kind::kCall && node.array.SharesMemory(region.array))
      node.version = version;
  }
}

bool Tape::Depends(const NDArray& array) {
  const Memory* memory = Look(array);
  if (!memory) return false;
  return std::any_of(memory->regions.begin(), memory->regions.end(), [&](const Region& region) {
    const bool meets = region.array.Overlaps(array) || region.array.SameView(array);
    return meets && !IsConstant(region);
  });
}

Value Tape::ViewOf(const Region& region, const NDArray& part) {
  const NDArray& whole = region.array;
  if (!whole.layout().plain() || !part.layout().plain() || whole.dtype() != part.dtype() ||
      part.shape().ndim() == 0) {
    return {};
  }
  Value value = region.value;
  const int64_t size = part.shape().Size();
  if (size != whole.shape().Size()) {
    const int64_t begin = BytesBetween(whole, part) / SizeOf(part.dtype());
    value = AddCall("Reshape", {{"shape", "(-1,)"}}, {value});
    value = AddCall(
        "slice_axis",
        {{"axis", "0"}, {"begin", std::to_string(begin)}, {"end", std::to_string(begin + size)}},
        {value});
  }
  return AddCall("Reshape", {{"shape", part.shape().ToTuple()}}, {value});
}

Value Tape::Known(Memory* memory, const NDArray& array, bool* mixed) {
  std::optional<Region> holder;
  *mixed = false;
  for (const Region& region : memory->regions) {
    if (IsConstant(region)) continue;
    if (region.value && region.array.SameView(array)) return region.value;
    if (!region.array.Overlaps(array)) continue;
    if (region.value && Holds(region.array, array)) {
      holder = region;
    } else {
      *mixed = true;
    }
  }
  // A region holds what its elements are now, so one that holds them all says what they are.
  const Value view = holder ? ViewOf(*holder, array) : Value();
  if (view) {
    memory->regions.push_back({array, view, /*derived=*/true});
    *mixed = false;
  } else {
    *mixed = *mixed || holder.has_value();
  }
  return view;
}

Value Tape::Read(const NDArray& array) {
  Memory* memory = Look(array);
  bool mixed = false;
  if (memory) {
    if (const Value known = Known(memory, array, &mixed)) return known;
    for (const Region& region : memory->regions) {
      if (IsConstant(region) && region.array.SameView(array)) return region.value;
    }
  } else {
    memory = &memory_[array.var()];
    memory->version = VersionOf(array);
  }
  TapeNode node;
  node.kind = TapeNode::Kind::kConstant;
  node.array = array;
  node.version = memory->version;
  node.mixed = mixed;
  const Value value = Add(std::move(node));
  memory->regions.push_back({array, value});
  return value;
}

Value Tape::ResultIn(const NDArray& array) {
  Memory* memory = Look(array);
  bool mixed = false;
  const Value known = memory ? Known(memory, array, &mixed) : Value();
  const bool is_result =
      known && nodes_[static_cast<size_t>(known.node)].kind == TapeNode::Kind::kCall;
  return is_result ? known : Value();
}

// Before a call that writes an array: constants there are copied, for Backward reads them.
void Tape::KeepConstants(const InvokedCall& call, const NDArray& written) {
  const Memory* memory = Look(written);
  if (!memory) return;
  for (const Region& region : memory->regions) {
    if (!region.value || !region.array.Overlaps(written)) continue;
    TapeNode& node = nodes_[static_cast<size_t>(region.value.node)];
    if (node.kind == TapeNode::Kind::kVariable) {
      Throw(ErrorKind::kUsage,
            "{} would write the attached array {} during a Recording; write it after the "
            "Recording, or under an autograd::Pause",
            call.op, Describe(node.array));
    }
    if (node.kind != TapeNode::Kind::kConstant || node.mixed ||
        !node.array.SharesMemory(region.array)) {
      continue;
    }
    node.array = node.array.Copy(node.array.ctx());
    node.version = VersionOf(node.array);
  }
}

// The array has just been written, with a recorded result or (none) with a constant.
void Tape::Write(const NDArray& array, Value value) {
  const auto found = memory_.find(array.var());
  if (found == memory_.end() && !value) return;
  Memory& memory = found == memory_.end() ? memory_[array.var()] : found->second;
  const auto replaced = [&](const Region& region) {
    if (region.array.SameView(array)) return true;
    return region.array.Overlaps(array) &&
           (region.derived || IsConstant(region) || Holds(array, region.array));
  };
  std::erase_if(memory.regions, replaced);
  for (Region& region : memory.regions) {
    if (region.array.Overlaps(array)) region.value = {};
  }
  if (value) memory.regions.push_back({array, value});
  if (memory.regions.empty()) {
    memory_.erase(array.var());
  } else {
    Advance(&memory, VersionOf(array));
  }
}

bool Tape::BeforeCall(const InvokedCall& call) {
  pending_.reset();
  const bool adds = call.req == OpReqType::kAddTo;
  const auto depends = [this](const NDArray& array) { return Depends(array); };
  if (call.req != OpReqType::kNullOp &&
      (std::any_of(call.in.begin(), call.in.end(), depends) ||
       (adds && std::any_of(call.out.begin(), call.out.end(), depends)))) {
    Pending pending;
    if (call.draws) {
      if (!random_) random_ = runtime().resources().NextCall();
      pending.draw = draws_[std::string(call.op)]++;
    }
    for (const NDArray& array : call.in) pending.in.push_back(Read(array));
    if (adds) {
      for (const NDArray& array : call.out) pending.before.push_back(Read(array));
    }
    pending_ = std::move(pending);
  }
  for (const NDArray& array : call.out) {
    if (call.req == OpReqType::kNullOp) {
      Look(array);
    } else {
      KeepConstants(call, array);
    }
  }
  for (const NDArray& array : call.aux) KeepConstants(call, array);
  return pending_.has_value();
}

std::optional<CallDraws> Tape::DrawsOf(const InvokedCall& call) {
  if (!pending_ || pending_->draw < 0) return std::nullopt;
  return CallDraws{*random_, NameOfDraw(call.op, pending_->draw)};
}

void Tape::AfterCall(const InvokedCall& call) {
  const std::optional<Pending> pending = std::exchange(pending_, std::nullopt);
  Value result;
  if (pending) {
    result = AddCall(std::string(call.op), call.kwargs, pending->in);
    nodes_.back().aux.assign(call.aux.begin(), call.aux.end());
    nodes_.back().draw = pending->draw;
  }
  for (size_t i = 0; i < call.out.size(); ++i) {
    if (call.req == OpReqType::kNullOp) {  // a new version of the same elements
      const auto found = memory_.find(call.out[i].var());
      if (found != memory_.end()) Advance(&found->second, VersionOf(call.out[i]));
      continue;
    }
    Value value = result;
    value.output = static_cast<int>(i);
    if (pending && !pending->before.empty())
      value = AddCall("_plus", {}, {pending->before[i], value});
    Write(call.out[i], value);
  }
  if (pending) return;
  for (const NDArray& array : call.aux) Write(array, {});
}

}  // namespace mxtrain::autograd
