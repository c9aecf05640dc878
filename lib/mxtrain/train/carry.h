// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recurrent layers whose states go on from batch to batch, as when the rows of the batches are
// streams of one text (truncated backpropagation through time; Zaremba et al. 2014, arXiv
// 1409.2329). The model has no such states: on its own, a batch begins with zeros.
#include <map>
#include <string>
#include <vector>

#include "mxtrain/executor/executor.h"
#include "mxtrain/io/data_iter.h"

namespace mxtrain {

struct CarryingNet {
  Symbol net;                       // its outputs, then the last states
  std::vector<std::string> states;  // inputs, in the order of those outputs: "lstm_state"
  size_t outputs = 0;               // before them
};
// `layers`: names of RNN. Throws kConfig for one that is not there, is bidirectional, or whose
// states are given.
MXTRAIN_API CarryingNet WithCarriedStates(const OperatorRegistry& operators, const Symbol& net,
                                          const std::vector<std::string>& layers);

// For a request that binds the net: inputs whose shapes follow from it.
MXTRAIN_API std::vector<DataDesc> WithStates(std::vector<DataDesc> arrays, const CarryingNet& net);

// The states of one executor of the net: zero, and after each batch those that it ended with. Used
// by the thread that runs the executor, which must outlive it.
class MXTRAIN_API CarriedStates {
 public:
  CarriedStates(Runtime& runtime, const Executor& executor, const CarryingNet& net);
  void Zero();
  // Puts them among the inputs of the executor, in its order.
  void PutInto(std::vector<NDArray>* inputs) const;
  // After a batch was pushed.
  void Update();
  std::map<std::string, NDArray> Arrays() const;  // by the names of the inputs

 private:
  struct State {
    std::string name;
    size_t input, output;  // of the executor
    NDArray array;
  };
  const Executor& executor_;
  std::vector<State> states_;
};

}  // namespace mxtrain
