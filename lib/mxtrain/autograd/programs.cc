// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/autograd/internal/programs.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "mxtrain/autograd/internal/tape.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain::autograd {
namespace {

using Kind = TapeNode::Kind;

std::string NameOfState(size_t number) {
  return format("state_{}", number);
}

void AppendText(std::string* key, const std::string& text) {
  fmt::format_to(std::back_inserter(*key), "{}:{}", text.size(), text);
}

}  // namespace

// Its nodes are numbered in their order, so that equal structures have equal numbers.
struct Programs::Part {
  Part(const Tape& tape, std::span<const Value> of);

  std::string NameOf(size_t place) const;
  std::string Key(Context ctx) const;
  bool Draws() const;
  // Throws kUsage for an array whose elements are no longer those that were read.
  void CheckUnchanged() const;
  Symbol MakeSymbol(const OperatorRegistry& registry) const;

  std::vector<const TapeNode*> nodes;
  std::vector<Value> heads;            // their `node`, and that of `in`: a place in `nodes`
  std::vector<std::vector<Value>> in;  // of each node
  std::vector<NDArray> aux;            // auxiliary states of its calls, each once

 private:
  size_t PlaceOfState(const NDArray& state) const;
  std::string ReaderOf(size_t place) const;
};

Programs::Part::Part(const Tape& tape, std::span<const Value> of) {
  const std::vector<TapeNode>& all = tape.nodes();
  std::vector<bool> needed(all.size());
  for (const Value head : of) needed[static_cast<size_t>(head.node)] = true;
  for (size_t id = all.size(); id-- > 0;) {
    if (!needed[id]) continue;
    for (const Value value : all[id].in) needed[static_cast<size_t>(value.node)] = true;
  }
  std::vector<int> place(all.size(), -1);
  const auto placed = [&](Value value) {
    return Value{place[static_cast<size_t>(value.node)], value.output};
  };
  for (size_t id = 0; id < all.size(); ++id) {
    if (!needed[id]) continue;
    place[id] = static_cast<int>(nodes.size());
    nodes.push_back(&all[id]);
    std::vector<Value>& inputs = in.emplace_back();
    for (const Value value : all[id].in) inputs.push_back(placed(value));
    for (const NDArray& state : all[id].aux) {
      if (PlaceOfState(state) == aux.size()) aux.push_back(state);
    }
  }
  for (const Value head : of) heads.push_back(placed(head));
}

size_t Programs::Part::PlaceOfState(const NDArray& state) const {
  const auto found = std::find_if(aux.begin(), aux.end(),
                                  [&](const NDArray& known) { return known.SameView(state); });
  return static_cast<size_t>(found - aux.begin());
}

// Unique, since every name ends in its own number.
std::string Programs::Part::NameOf(size_t place) const {
  const TapeNode& node = *nodes[place];
  if (node.draw >= 0) return NameOfDraw(node.op, node.draw);
  const std::string what = node.kind == Kind::kCall       ? Lower(node.op)
                           : node.kind == Kind::kVariable ? "variable"
                                                          : "constant";
  return format("{}_{}", what, place);
}

std::string Programs::Part::Key(Context ctx) const {
  std::string key = ctx.ToString();
  const auto append_values = [&key](const std::vector<Value>& values) {
    for (const Value value : values)
      fmt::format_to(std::back_inserter(key), " {}.{}", value.node, value.output);
    key += '\n';
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const TapeNode& node = *nodes[i];
    switch (node.kind) {
      case Kind::kVariable:
        fmt::format_to(std::back_inserter(key), "v{}", node.variable->id);
        break;
      case Kind::kConstant:
        fmt::format_to(std::back_inserter(key), "c{}{}", static_cast<int>(node.array.dtype()),
                       node.array.shape().ToString());
        break;
      case Kind::kCall:
        AppendText(&key, node.op);
        if (node.draw >= 0) fmt::format_to(std::back_inserter(key), "r{}", node.draw);
        for (const auto& [name, value] : node.kwargs) {
          AppendText(&key, name);
          AppendText(&key, value);
        }
        for (const NDArray& state : node.aux)
          fmt::format_to(std::back_inserter(key), "s{}", PlaceOfState(state));
        break;
    }
    append_values(in[i]);
  }
  append_values(heads);
  return key;
}

bool Programs::Part::Draws() const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const TapeNode* node) { return node->draw >= 0; });
}

std::string Programs::Part::ReaderOf(size_t place) const {
  for (size_t i = place + 1; i < nodes.size(); ++i) {
    const bool reads = std::any_of(in[i].begin(), in[i].end(), [place](Value value) {
      return value.node == static_cast<int>(place);
    });
    if (reads) return nodes[i]->op;
  }
  return "the recording";
}

void Programs::Part::CheckUnchanged() const {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const TapeNode& node = *nodes[i];
    if (node.kind == Kind::kCall) continue;
    const bool is_variable = node.kind == Kind::kVariable;
    const std::string array = Describe(node.array);
    if (is_variable && !node.variable->attached) {
      Throw(ErrorKind::kUsage, "Backward: the attached array {} was detached after {} read it",
            array, ReaderOf(i));
    }
    if (node.mixed) {
      Throw(ErrorKind::kUsage,
            "Backward: {} read the array {}, which holds recorded results but is none: it was "
            "written in parts, or by what is not recorded (Fill, CopyFrom, a Pause); use a new "
            "array, or join parts with Concat",
            ReaderOf(i), array);
    }
    if (node.array.runtime().engine().Version(node.array.var()) == node.version) continue;
    Throw(ErrorKind::kUsage, "Backward: the {}array {} was written after {} read it; {}",
          is_variable ? "attached " : "", array, ReaderOf(i),
          is_variable ? "write it after Backward" : "write to another array, or after Backward");
  }
}

Symbol Programs::Part::MakeSymbol(const OperatorRegistry& registry) const {
  std::vector<Symbol> symbols, states;
  for (size_t k = 0; k < aux.size(); ++k) states.push_back(Symbol::Variable(NameOfState(k)));
  const auto output_of = [&symbols](Value value) {
    const Symbol& symbol = symbols[static_cast<size_t>(value.node)];
    return symbol.NumOutputs() == 1 ? symbol : symbol[value.output];
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->kind != Kind::kCall) {
      symbols.push_back(Symbol::Variable(NameOf(i)));
      continue;
    }
    std::vector<Symbol> inputs;
    for (const Value value : in[i]) inputs.push_back(output_of(value));
    for (const NDArray& state : nodes[i]->aux) inputs.push_back(states[PlaceOfState(state)]);
    symbols.push_back(Symbol::Create(registry, nodes[i]->op, NameOf(i), nodes[i]->kwargs, inputs));
  }
  std::vector<Symbol> outputs;
  for (const Value head : heads) outputs.push_back(output_of(head));
  return Symbol::Group(outputs);
}

Programs::Program Programs::Bind(const Part& part, Context ctx) {
  Executor::BindRequest request;
  request.ctx = ctx;
  request.namesake = 0;  // the draws of a call are those of its name (Tape::DrawsOf)
  std::map<std::string, NDArray> args, grads, auxs;
  std::map<std::string, size_t> places;
  Program program;
  for (size_t i = 0; i < part.nodes.size(); ++i) {
    const TapeNode& node = *part.nodes[i];
    if (node.kind == Kind::kCall) continue;
    const std::string name = part.NameOf(i);
    if (node.kind == Kind::kVariable) {
      args[name] = node.variable->array;
      grads[name] = node.variable->gradient;
      request.grad_req[name] = node.variable->req;
      program.variables.push_back(node.variable->id);
    } else {
      request.inputs.insert(name);
      request.shapes[name] = node.array.shape();
      request.types[name] = node.array.dtype();
      places[name] = i;
    }
  }
  program.aux = part.aux;
  for (size_t k = 0; k < part.aux.size(); ++k) auxs[NameOfState(k)] = part.aux[k];
  Executor* shared = nullptr;
  for (const Program& other : programs_) {
    if (other.ctx == ctx) shared = other.executor.get();
  }
  program.key = part.Key(ctx);
  program.ctx = ctx;
  program.executor = Executor::Bind(runtime_, part.MakeSymbol(runtime_.operators()), request, args,
                                    grads, auxs, shared);
  for (const std::string& name : program.executor->input_names())
    program.inputs.push_back(places.at(name));
  return program;
}

Programs::Program& Programs::Find(const Part& part, Context ctx, std::list<Program>* dropped) {
  const std::string key = part.Key(ctx);
  const auto same_states = [&part](const Program& program) {
    return std::equal(part.aux.begin(), part.aux.end(), program.aux.begin(), program.aux.end(),
                      [](const NDArray& a, const NDArray& b) { return a.SameView(b); });
  };
  const auto found = std::find_if(programs_.begin(), programs_.end(), [&](const Program& program) {
    return program.key == key && same_states(program);
  });
  if (found != programs_.end()) {
    ++counts_.reused;
    programs_.splice(programs_.begin(), programs_, found);
  } else {
    programs_.push_front(Bind(part, ctx));
    ++counts_.bound;
    if (programs_.size() > static_cast<size_t>(kMostPrograms))
      dropped->splice(dropped->begin(), programs_, std::prev(programs_.end()));
  }
  return programs_.front();
}

void Programs::Run(const Tape& tape, std::span<const Value> heads, std::span<const NDArray> arrays,
                   std::span<const NDArray> head_gradients) {
  const Part part(tape, heads);
  std::list<Program> dropped;  // destroyed after the lock, since their executors may wait
  // An array that is detached from now on is forgotten after this run, and so is its program.
  const MutexLock lock(mutex_);
  part.CheckUnchanged();
  const Program& program = Find(part, arrays[0].ctx(), &dropped);
  std::vector<NDArray> inputs, given;
  for (const size_t place : program.inputs) inputs.push_back(part.nodes[place]->array);
  for (size_t i = 0; i < heads.size(); ++i) {
    if (!program.executor->graph().head_grads[i]) continue;
    const bool ones = head_gradients.empty() || head_gradients[i].empty();
    given.push_back(ones ? NDArray(runtime_, arrays[i].shape(), arrays[i].dtype(), program.ctx)
                         : head_gradients[i]);
    if (ones) given.back().Fill(1);
  }
  if (part.Draws()) {
    if (tape.random()->seed != runtime_.resources().seed()) {
      Throw(ErrorKind::kUsage,
            "Backward: the random numbers were seeded anew after a recorded call drew some; seed "
            "before the Recording, or after Backward");
    }
    program.executor->set_random_step(tape.random()->step - 1);  // its next one
  }
  program.executor->Forward(inputs);
  program.executor->Backward(given);
}

void Programs::Forget(int64_t variable) {
  std::list<Program> dropped;  // as in Run
  const MutexLock lock(mutex_);
  for (auto next = programs_.begin(); next != programs_.end();) {
    const auto program = next++;
    const std::vector<int64_t>& read = program->variables;
    if (std::find(read.begin(), read.end(), variable) != read.end())
      dropped.splice(dropped.begin(), programs_, program);
  }
}

BackwardCounts Programs::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace mxtrain::autograd
