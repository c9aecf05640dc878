// SPDX-License-Identifier: Apache-2.0
#pragma once
// Both passes of an RNN, layer by layer. The products with W and the gradients of weights are one
// product over all steps of a direction; what must go step by step is left to `Steps`:
//
//   void Multiply(const Device&, a, view, b, view, c, view, bool add, C* scratch)
//                                                  c = a b, or += a b
//   void Forward(const Device&, const Direction<C>&, const C* R, const C* P, C* scratch)
//   void Backward(const Device&, const Direction<C>&, const DirectionGradient<C>&, const C* R,
//                 const C* P, C* scratch)          leaves the gradients of the initial states in
//                                                  the gradient's h and c
//   void SumColumns(const Device&, rows, columns, const C* from, row, OpReqType, C* to, C* scratch)
#include <memory>

#include "mxtrain/device/matrix_view.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operators/rnn/rnn.h"
#include "mxtrain/operators/rnn/rnn_rows.h"
#include "mxtrain/operators/rnn/rnn_space.h"

namespace mxtrain::rnn {

// [rows, columns] with rows at a distance of `row`.
inline MatrixView RowsOf(int64_t rows, int64_t columns, int64_t row) {
  return {rows, columns, row, 1};
}

// T: of the arrays; C: in which it computes.
template <typename Device, typename Steps, typename T, typename C>
class RnnPass final : public Operator {
  using P = RnnProperty;

 public:
  RnnPass(const Setup& setup, int lengths_at, std::unique_ptr<Steps> steps)
      : s_(setup), lengths_at_(lengths_at), steps_(std::move(steps)) {}

  static constexpr bool kConverts = !std::is_same_v<T, C>;

  // The bytes of `saved`, and of the workspaces.
  static int64_t SavedBytes(const Setup& s) {
    Space<C> saved, work;
    ForwardSpace<C>(s, &saved, &work);
    return saved.bytes();
  }
  static int64_t ForwardBytes(const Setup& s) {
    Space<C> saved, work;
    ForwardSpace<C>(s, &saved, &work);
    TakeCommon(s, s.forward_scratch, &work);
    return work.bytes();
  }
  static int64_t BackwardBytes(const Setup& s) {
    Space<C> saved, work;
    ForwardSpace<C>(s, &saved, &work);
    BackwardSpace<C>(s, &work);
    TakeCommon(s, s.backward_scratch, &work);
    return work.bytes();
  }

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    Call call = CallOf(args.ctx, device, args.in_data);
    const auto [parameters, scratch] = TakeCommon(s_, s_.forward_scratch, &call.work);
    call.parameters = ParametersOf(device, args.in_data, parameters);
    if constexpr (kConverts) {
      CopyAll<C>(device, s_.g.rows() * s_.g.inputs, args.in_data[P::kData].template dptr<T>(),
                 OpReqType::kWriteTo, call.space.At(0).input);
    }
    for (int64_t layer = 0; layer < s_.g.layers; ++layer) {
      const Input input = InputOf(call, layer, args.in_data[P::kData]);
      for (int64_t d = 0; d < s_.g.directions; ++d) {
        const Direction<C> at = DirectionOf(call, layer, d);
        PutStates(device, args.in_data, layer * s_.g.directions + d, at);
        steps_->Multiply(
            device, input.data, input.view, call.parameters + s_.g.InputWeights(layer, d),
            InputWeightsView(layer).Transposed(), at.gates, GatesView(), false, scratch);
        steps_->Forward(device, at, call.parameters + s_.g.RecurrentWeights(layer, d),
                        call.parameters + s_.g.ProjectionWeights(layer, d), scratch);
        PutStateOutputs(device, args, layer * s_.g.directions + d, at);
      }
      PassOn(device, args, call, layer);
    }
  }

  void Backward(const BackwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    Call call = CallOf(args.ctx, device, args.in_data);
    BackwardSpace<C> space(s_, &call.work);
    const auto [parameters, scratch] = TakeCommon(s_, s_.backward_scratch, &call.work);
    call.parameters = ParametersOf(device, args.in_data, parameters);
    const C* head = HeadOf(device, args.out_grad[P::kOutput], space);
    int turn = head == space.heads[0] ? 1 : 0;
    for (int64_t layer = s_.g.layers; layer-- > 0; turn = 1 - turn) {
      const Sink inputs = InputGradient(args, layer, space, turn);
      for (int64_t d = 0; d < s_.g.directions; ++d) {
        const Direction<C> at = DirectionOf(call, layer, d);
        space.to.head = s_.g.rows() > 0 ? head + d * s_.g.output : head;
        space.to.head_row = s_.g.width();
        PutStateHeads(device, args.out_grad, layer * s_.g.directions + d, space.to);
        steps_->Backward(device, at, space.to, call.parameters + s_.g.RecurrentWeights(layer, d),
                         call.parameters + s_.g.ProjectionWeights(layer, d), scratch);
        PutStateGradients(device, args, layer * s_.g.directions + d, space.to);
        AddWeightGradients(device, args, call, space, layer, d, scratch);
        if (inputs.req == OpReqType::kNullOp) continue;
        steps_->Multiply(device, space.to.gates, GatesView(),
                         call.parameters + s_.g.InputWeights(layer, d), InputWeightsView(layer),
                         inputs.data,
                         RowsOf(s_.g.rows(), s_.g.InputsOf(layer), s_.g.InputsOf(layer)),
                         d > 0 || inputs.req == OpReqType::kAddTo, scratch);
      }
      if (layer == 0) {
        StoreConverted(device, args, space);
      } else {
        if (s_.drops)
          DropElements(device, DropOf(call, layer - 1), s_.g.rows() * s_.g.width(), inputs.data);
        head = inputs.data;
      }
    }
  }

 private:
  struct Call {
    const OpContext& ctx;
    Space<C> work;
    ForwardSpace<C> space;
    Lengths lengths;
    const C* parameters;
  };
  struct Input {
    const C* data;
    MatrixView view;
  };
  struct Sink {
    C* data;
    OpReqType req;
  };
  struct Common {
    C *parameters, *scratch;
  };

  static Common TakeCommon(const Setup& s, int64_t scratch, Space<C>* work) {
    C* const parameters = work->TakeIf(kConverts, s.g.ParameterCount());
    return {parameters, work->Take(scratch)};
  }

  Call CallOf(const OpContext& ctx, const Device&, std::span<const TBlob> in) const {
    Space<C> saved(ctx.saved.empty() ? nullptr : ctx.saved[0].data), work(ctx.workspace.data);
    ForwardSpace<C> space(s_, &saved, &work);
    Lengths lengths;
    if (lengths_at_ >= 0) lengths = {NumberReader(in[static_cast<size_t>(lengths_at_)]), true};
    return {ctx, work, space, lengths, nullptr};
  }
  Direction<C> DirectionOf(const Call& call, int64_t layer, int64_t d) const {
    Direction<C> at = call.space.At(layer).directions[d];
    at.lengths = call.lengths;
    at.input_bias = call.parameters + s_.g.InputBias(layer, d);
    at.recurrent_bias = call.parameters + s_.g.RecurrentBias(layer, d);
    return at;
  }

  const C* ParametersOf(const Device& device, std::span<const TBlob> in, C* converted) const {
    const T* const parameters = in[P::kParameters].template dptr<T>();
    if constexpr (kConverts) {
      CopyAll<C>(device, s_.g.ParameterCount(), parameters, OpReqType::kWriteTo, converted);
      return converted;
    } else {
      return parameters;
    }
  }

  MatrixView GatesView() const { return RowsOf(s_.g.rows(), s_.g.gate_columns(), s_.gate_row); }
  MatrixView InputWeightsView(int64_t layer) const {
    return RowsOf(s_.g.gate_columns(), s_.g.InputsOf(layer), s_.g.InputsOf(layer));
  }

  Input InputOf(const Call& call, int64_t layer, const TBlob& data) const {
    const int64_t columns = s_.g.InputsOf(layer);
    const C* own = call.space.At(layer).input;
    if constexpr (!kConverts) {
      if (layer == 0) own = data.template dptr<T>();
    }
    if (own) return {own, RowsOf(s_.g.rows(), columns, columns)};
    if (layer == 0) return {nullptr, RowsOf(s_.g.rows(), columns, columns)};  // empty
    const Direction<C> below = DirectionOf(call, layer - 1, 0);
    return {below.H(below.To(0)), RowsOf(s_.g.rows(), columns, below.h_row)};
  }

  // Initial states into their slots.
  void PutStates(const Device& device, std::span<const TBlob> in, int64_t index,
                 const Direction<C>& at) const {
    CopyRows<C>(device, s_.g.batch, s_.g.output,
                in[P::kState].template dptr<T>() + index * s_.g.batch * s_.g.output, s_.g.output,
                OpReqType::kWriteTo, at.H(at.FirstSlot()), s_.h_row);
    if (!at.c) return;
    CopyRows<C>(device, s_.g.batch, s_.g.hidden,
                in[P::kStateCell].template dptr<T>() + index * s_.cell_size(), s_.g.hidden,
                OpReqType::kWriteTo, at.CellState(at.FirstSlot()), s_.g.hidden);
  }
  void PutStateOutputs(const Device& device, const ForwardArgs& args, int64_t index,
                       const Direction<C>& at) const {
    const auto put = [&](size_t output, int64_t columns, const C* from, int64_t row) {
      if (args.out_data.size() <= output || args.req[output] == OpReqType::kNullOp) return;
      CopyRows<T>(device, s_.g.batch, columns, from, row, args.req[output],
                  args.out_data[output].template dptr<T>() + index * s_.g.batch * columns, columns);
    };
    put(P::kStateOutput, s_.g.output, at.H(at.LastSlot()), s_.h_row);
    if (at.c) put(P::kStateCellOutput, s_.g.hidden, at.CellState(at.LastSlot()), s_.g.hidden);
  }

  // The output of a layer becomes the operator's, or the input of the next layer.
  void PassOn(const Device& device, const ForwardArgs& args, const Call& call,
              int64_t layer) const {
    const bool last = layer + 1 == s_.g.layers;
    C* const next = last ? nullptr : call.space.At(layer + 1).input;
    for (int64_t d = 0; d < s_.g.directions; ++d) {
      const Direction<C> at = DirectionOf(call, layer, d);
      if (last)
        PutOutput(device, at, d, args.req[P::kOutput],
                  args.out_data[P::kOutput].template dptr<T>());
      else if (next)
        PutOutput(device, at, d, OpReqType::kWriteTo, next);
    }
    if (last) return;
    if (s_.drops) DropElements(device, DropOf(call, layer), s_.g.rows() * s_.g.width(), next);
  }
  // Of the output of `layer`.
  Drop DropOf(const Call& call, int64_t layer) const {
    const int64_t each = RoundUp(s_.g.rows() * s_.g.width(), kUniformBlock);
    return {s_.keep, call.ctx.requested[0].Draws(), static_cast<uint64_t>(layer * each)};
  }

  const C* HeadOf(const Device& device, const TBlob& head, const BackwardSpace<C>& space) const {
    if constexpr (kConverts) {
      CopyAll<C>(device, s_.g.rows() * s_.g.width(), head.template dptr<T>(), OpReqType::kWriteTo,
                 space.heads[0]);
      return space.heads[0];
    } else {
      return head.template dptr<T>();
    }
  }
  void PutStateHeads(const Device& device, std::span<const TBlob> heads, int64_t index,
                     const DirectionGradient<C>& to) const {
    const auto put = [&](size_t output, int64_t columns, C* at) {
      if (!at) return;
      if (heads.size() <= output) return ZeroRows(device, s_.g.batch, columns, at);
      CopyRows<C>(device, s_.g.batch, columns,
                  heads[output].template dptr<T>() + index * s_.g.batch * columns, columns,
                  OpReqType::kWriteTo, at, columns);
    };
    put(P::kStateOutput, s_.g.output, to.h);
    put(P::kStateCellOutput, s_.g.hidden, to.c);
  }
  void PutStateGradients(const Device& device, const BackwardArgs& args, int64_t index,
                         const DirectionGradient<C>& to) const {
    const auto put = [&](size_t argument, int64_t columns, const C* from) {
      if (args.req[argument] == OpReqType::kNullOp) return;
      CopyRows<T>(device, s_.g.batch, columns, from, columns, args.req[argument],
                  args.in_grad[argument].template dptr<T>() + index * s_.g.batch * columns,
                  columns);
    };
    put(P::kState, s_.g.output, to.h);
    if (to.c) put(P::kStateCell, s_.g.hidden, to.c);
  }

  // Where the gradient of a layer's input goes.
  Sink InputGradient(const BackwardArgs& args, int64_t layer, const BackwardSpace<C>& space,
                     int turn) const {
    if (layer > 0) return {space.heads[turn], OpReqType::kWriteTo};
    const OpReqType req = args.req[P::kData];
    if (req == OpReqType::kNullOp) return {nullptr, req};
    if constexpr (kConverts) {
      return {space.data, OpReqType::kWriteTo};
    } else {
      return {args.in_grad[P::kData].template dptr<T>(), req};
    }
  }
  Sink ParameterGradient(const BackwardArgs& args, const BackwardSpace<C>& space) const {
    const OpReqType req = args.req[P::kParameters];
    if (req == OpReqType::kNullOp) return {nullptr, req};
    if constexpr (kConverts) {
      return {space.parameters, OpReqType::kWriteTo};
    } else {
      return {args.in_grad[P::kParameters].template dptr<T>(), req};
    }
  }

  void AddWeightGradients(const Device& device, const BackwardArgs& args, const Call& call,
                          const BackwardSpace<C>& space, int64_t layer, int64_t d, C* scratch) {
    const Sink sink = ParameterGradient(args, space);
    if (sink.req == OpReqType::kNullOp) return;
    const bool add = sink.req == OpReqType::kAddTo;
    const Geometry& g = s_.g;
    const Direction<C> at = DirectionOf(call, layer, d);
    const Input input = InputOf(call, layer, args.in_data[P::kData]);
    steps_->Multiply(device, space.to.gates, GatesView().Transposed(), input.data, input.view,
                     sink.data + g.InputWeights(layer, d), InputWeightsView(layer), add, scratch);
    steps_->Multiply(device, space.to.recurrent, GatesView().Transposed(), at.H(at.From(0)),
                     RowsOf(g.rows(), g.output, s_.h_row), sink.data + g.RecurrentWeights(layer, d),
                     RowsOf(g.gate_columns(), g.output, g.output), add, scratch);
    if (g.projects) {
      steps_->Multiply(device, space.to.total, RowsOf(g.rows(), g.output, g.output).Transposed(),
                       at.full, RowsOf(g.rows(), g.hidden, g.hidden),
                       sink.data + g.ProjectionWeights(layer, d),
                       RowsOf(g.output, g.hidden, g.hidden), add, scratch);
    }
    C *const input_bias = sink.data + g.InputBias(layer, d), *const recurrent_bias =
                                                                 sink.data +
                                                                 g.RecurrentBias(layer, d);
    steps_->SumColumns(device, g.rows(), g.gate_columns(), space.to.recurrent, s_.gate_row,
                       sink.req, recurrent_bias, scratch);
    // The same sums, except for gru.
    if (space.to.gates == space.to.recurrent && !add) {
      CopyAll<C>(device, g.gate_columns(), recurrent_bias, OpReqType::kWriteTo, input_bias);
    } else {
      steps_->SumColumns(device, g.rows(), g.gate_columns(), space.to.gates, s_.gate_row, sink.req,
                         input_bias, scratch);
    }
  }

  void StoreConverted(const Device& device, const BackwardArgs& args,
                      const BackwardSpace<C>& space) const {
    if constexpr (kConverts) {
      const auto store = [&](P::Argument argument, int64_t n, const C* from) {
        CopyAll<T>(device, n, from, args.req[argument], args.in_grad[argument].template dptr<T>());
      };
      store(P::kData, s_.g.rows() * s_.g.inputs, space.data);
      store(P::kParameters, s_.g.ParameterCount(), space.parameters);
    }
  }

  const Setup s_;
  const int lengths_at_;
  const std::unique_ptr<Steps> steps_;
};

}  // namespace mxtrain::rnn
