// SPDX-License-Identifier: Apache-2.0
// linear_cross_entropy by products of blocks of rows.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <type_traits>

#include "mxtrain/base/math.h"
#include "mxtrain/device/cpu/onednn/onednn.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/linear_cross_entropy/linear_cross_entropy.h"
#include "mxtrain/operators/softmax/softmax_kernels.h"
#include "mxtrain/operators/softmax_output/softmax_gradient.h"

namespace mxtrain::linear_cross_entropy {
namespace {

using P = LinearCrossEntropyProperty;
using onednn::Arg;

constexpr int64_t kMostScoreBytes = 64 << 20;  // of a block
constexpr int64_t kRowsOfBlock = 16;           // a multiple of these

struct Extents {
  int64_t rows, width, classes;
  int64_t block;  // rows; the last one may have fewer

  int64_t blocks() const { return CeilDivide(rows, block); }
  int64_t rows_of(int64_t b) const { return std::min(block, rows - b * block); }
};

Extents ExtentsOf(const TShape& data, const LinearCrossEntropyParam& param) {
  const int64_t classes = param.num_hidden;
  const int64_t width = data[data.ndim() - 1], rows = data.Product(0, data.ndim() - 1);
  const auto row_bytes = classes * static_cast<int64_t>(sizeof(float));
  const int64_t most =
      std::max(kMostScoreBytes / row_bytes / kRowsOfBlock, int64_t{1}) * kRowsOfBlock;
  const int64_t block = RoundUp(CeilDivide(rows, CeilDivide(rows, most)), kRowsOfBlock);
  return {rows, width, classes, std::min(param.block_rows.value_or(block), rows)};
}

// Floats that take the slopes of a block as bfloat16.
int64_t NarrowFloats(const Extents& e) {
  return RoundUp(CeilDivide(e.block * e.classes, 2), kRowsOfBlock);
}

// The products of a block of `rows` rows.
struct Products {
  onednn::Descriptor scores;                         // x weight^T
  std::optional<onednn::Descriptor> data;            // p weight
  std::optional<onednn::Descriptor> weight, adding;  // p^T x, and the same added

  int64_t scratchpad_bytes() const {
    int64_t bytes = scores.scratchpad_bytes();
    for (const auto& d : {data, weight, adding}) {
      if (d) bytes = std::max(bytes, d->scratchpad_bytes());
    }
    return bytes;
  }
};

// What is saved, in this order; also of what is not wanted, with no bytes.
struct Wanted {
  bool data = false, weight = false, bias = false;
  bool any() const { return data || weight || bias; }
};
enum Saved { kDataGrad, kWeightGrad, kBiasGrad };

MatrixView Rows(int64_t rows, int64_t columns) {
  return {rows, columns, columns, 1};
}

Expected<Products, Refusal> Describe(Backend& backend, const Extents& e, int64_t rows, DType type,
                                     const Wanted& wanted) {
  const MatrixView x = Rows(rows, e.width), w = Rows(e.classes, e.width), p = Rows(rows, e.classes);
  std::optional<Refusal> refusal;
  const auto multiply = [&](const MatrixView& a, const MatrixView& b, const MatrixView& c,
                            bool add) -> std::optional<onednn::Descriptor> {
    const onednn::Result result = onednn::Multiply(backend, {a, b, c, type, add, DType::kFloat32});
    if (!result) {
      refusal = result.error();
    } else if (result->speed() == onednn::Speed::kReference) {
      refusal = Refusal{"oneDNN has only a loop over elements for it"};
    } else {
      return *result;
    }
    return std::nullopt;
  };
  const auto scores = multiply(x, w.Transposed(), p, false);
  if (!scores) return *refusal;
  Products products{*scores, {}, {}, {}};
  if (wanted.data) products.data = multiply(p, w, x, false);
  if (wanted.weight) {
    products.weight = multiply(p.Transposed(), x, w, false);
    if (e.blocks() > 1) products.adding = multiply(p.Transposed(), x, w, true);
  }
  if (refusal) return *refusal;
  return products;
}

class Primitives {
 public:
  explicit Primitives(const Products& products) : scores(products.scores.Make()) {
    if (products.data) data = products.data->Make();
    if (products.weight) weight = products.weight->Make();
    if (products.adding) adding = products.adding->Make();
  }
  std::unique_ptr<onednn::Primitive> scores, data, weight, adding;
};

// T: of data and weight.
template <typename T>
class LinearCrossEntropy final : public Operator {
 public:
  LinearCrossEntropy(const LinearCrossEntropyParam& param, const Extents& extents,
                     const Wanted& wanted, const Products& whole, const Products& rest)
      : param_(param), softmax_(param.Softmax()), e_(extents), wanted_(wanted), whole_(whole) {
    if (e_.rows_of(e_.blocks() - 1) != e_.block) rest_.emplace(rest);
  }

  void Forward(const ForwardArgs& args) override {
    const bool trains = wanted_.any() && !args.ctx.saved.empty();
    if (args.req[0] == OpReqType::kNullOp && !trains) return;
    float* const scores = static_cast<float*>(args.ctx.workspace.data);
    float* const behind = scores + e_.block * e_.classes;
    T* const slopes = kNarrow ? reinterpret_cast<T*>(behind) : reinterpret_cast<T*>(scores);
    void* const scratch = behind + (kNarrow ? NarrowFloats(e_) : 0);
    const auto run = [&](onednn::Primitive& primitive, void* src, void* weights, float* dst) {
      primitive.Execute({{Arg::kSrc, src},
                         {Arg::kWeights, weights},
                         {Arg::kDst, dst},
                         {Arg::kScratchpad, scratch}});
    };
    T* const weight = args.in_data[P::kWeight].dptr<T>();
    for (int64_t b = 0; b < e_.blocks(); ++b) {
      const int64_t rows = e_.rows_of(b);
      Primitives& products = rows == e_.block ? whole_ : *rest_;
      T* const data = args.in_data[P::kData].dptr<T>() + b * e_.block * e_.width;
      run(*products.scores, data, weight, scores);
      EndBlock(args, b * e_.block, rows, scores, trains ? slopes : nullptr);
      if (!trains) continue;
      if (wanted_.data) {
        run(*products.data, slopes, weight,
            args.ctx.saved[kDataGrad].dptr<float>() + b * e_.block * e_.width);
      }
      if (wanted_.weight) {
        run(b == 0 ? *products.weight : *products.adding, slopes, data,
            args.ctx.saved[kWeightGrad].dptr<float>());
      }
      if (wanted_.bias) AddColumns(scores, rows, b == 0, args.ctx.saved[kBiasGrad].dptr<float>());
    }
  }

  void Backward(const BackwardArgs& args) override {
    const SoftmaxTarget target =
        MakeSoftmaxTarget(softmax_, {e_.rows, e_.classes, 1}, args.in_data[P::kLabel]);
    const auto scale = static_cast<float>(target.scale);
    const auto put = [&]<typename G>(bool wanted, Saved from, P::Argument argument, G* grad) {
      if (!wanted) return;
      const float* const saved = args.ctx.saved[from].dptr<float>();
      SwitchReq(args.req[argument], [&](auto accumulate) {
        constexpr OpReqType kReq = accumulate() ? OpReqType::kAddTo : OpReqType::kWriteTo;
        ParallelFor(args.in_grad[argument].Size(), kParallelGrain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) Assign(kReq, grad, i, scale * saved[i]);
        });
      });
    };
    put(wanted_.data, kDataGrad, P::kData, static_cast<T*>(args.in_grad[P::kData].data));
    put(wanted_.weight, kWeightGrad, P::kWeight,
        static_cast<float*>(args.in_grad[P::kWeight].data));
    if (wanted_.bias)
      put(true, kBiasGrad, P::kBias, static_cast<float*>(args.in_grad[P::kBias].data));
  }

 private:
  static constexpr bool kNarrow = !std::is_same_v<T, float>;

  // The losses of rows [first, first + rows) from their scores, which become softmax - one-hot if
  // `slopes`, where that is wanted as T, is not null.
  void EndBlock(const ForwardArgs& args, int64_t first, int64_t rows, float* scores,
                T* slopes) const {
    const NumberReader labels(args.in_data[P::kLabel]);
    const float* const bias = param_.no_bias ? nullptr : args.in_data[P::kBias].dptr<float>();
    const OpReqType req = args.req[0];
    float* const losses = req == OpReqType::kNullOp ? nullptr : args.out_data[0].dptr<float>();
    const auto ignored = static_cast<int64_t>(param_.ignore_label);
    ParallelFor(rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        float* const row = scores + r * e_.classes;
        for (int64_t k = 0; bias && k < e_.classes; ++k) row[k] += bias[k];
        kernels_.forward_rows({}, row, row, 1, e_.classes, e_.classes);
        const int64_t label = labels.Index(first + r);
        const bool is_class = label >= 0 && label < e_.classes;
        if (losses) Assign(req, losses, first + r, is_class ? LossOf(row[label]) : 0.0f);
        if (!slopes) continue;
        if (param_.use_ignore && label == ignored) {
          std::fill_n(row, e_.classes, 0.0f);
        } else if (is_class) {
          row[label] -= 1;
        }
        if (!kNarrow) continue;
        T* const to = slopes + r * e_.classes;
        for (int64_t k = 0; k < e_.classes; ++k) to[k] = static_cast<T>(row[k]);
      }
    });
  }

  static float LossOf(float p) {
    if (std::isnan(p)) return p;
    return static_cast<float>(-std::log(std::max<double>(p, kLeastProbability)));
  }

  void AddColumns(const float* scores, int64_t rows, bool begins, float* sums) const {
    ParallelFor(e_.classes, kRowsOfBlock, [&](int64_t begin, int64_t end) {
      if (begins) std::fill(sums + begin, sums + end, 0.0f);
      for (int64_t r = 0; r < rows; ++r) {
        const float* const row = scores + r * e_.classes;
        for (int64_t k = begin; k < end; ++k) sums[k] += row[k];
      }
    });
  }

  const LinearCrossEntropyParam param_;
  const SoftmaxOutputParam softmax_;
  const Extents e_;
  const Wanted wanted_;
  Primitives whole_;
  std::optional<Primitives> rest_;
  const softmax::Kernels<float>& kernels_ = softmax::KernelsOf<float>();
};

Expected<Plan, Refusal> PlanOneDnn(const OperatorProperty& base, const PlanRequest& request,
                                   Backend& backend) {
  const auto& property = static_cast<const LinearCrossEntropyProperty&>(base);
  const LinearCrossEntropyParam& param = property.param();
  const TShape& data = request.in[P::kData].shape;
  const DType type = request.in[P::kData].type;
  if (std::string why = onednn::WhyNotType(type); !why.empty()) return Refusal{why};
  if (data.Size() == 0) return Refusal{"empty array"};
  const Extents extents = ExtentsOf(data, param);
  Wanted wanted;
  if (request.needs_backward) {
    const auto has = [&](size_t i) { return request.grad_req[i] != OpReqType::kNullOp; };
    wanted = {has(P::kData), has(P::kWeight), !param.no_bias && has(P::kBias)};
  }
  const auto whole = Describe(backend, extents, extents.block, type, wanted),
             rest = Describe(backend, extents, extents.rows_of(extents.blocks() - 1), type, wanted);
  if (!whole) return whole.error();
  if (!rest) return rest.error();
  Plan plan = PlainPlan(property, request);
  constexpr double kNanosecondsPerProduct = 0.02;  // of one thread with AVX2
  plan.cost += kNanosecondsPerProduct * property.ForwardFlops({data}, {}) /
               std::max(request.threads, 1) * (1 + wanted.data + wanted.weight);
  const auto size = static_cast<int64_t>(sizeof(float));
  plan.forward_workspace = extents.block * extents.classes * size +
                           std::max(whole->scratchpad_bytes(), rest->scratchpad_bytes());
  if (type == DType::kBfloat16) plan.forward_workspace += NarrowFloats(extents) * size;
  if (request.needs_backward) {
    plan.saved = {wanted.data ? data.Size() * size : 0,
                  wanted.weight ? extents.classes * extents.width * size : 0,
                  wanted.bias ? extents.classes * size : 0};
    plan.backward_reads = BackwardReads{{false}, std::vector<bool>(request.in.size()), {false}};
    plan.backward_reads->in_data[P::kLabel] = true;
    if (type == DType::kBfloat16) {
      plan.grad_layout.resize(request.in.size());
      plan.grad_layout[P::kWeight] = TypedLayout{DType::kFloat32, Layout()};
    }
  }
  plan.make = [=, whole = *whole, rest = *rest]() -> std::unique_ptr<Operator> {
    if (type == DType::kBfloat16) {
      return std::make_unique<LinearCrossEntropy<bfloat16>>(param, extents, wanted, whole, rest);
    }
    return std::make_unique<LinearCrossEntropy<float>>(param, extents, wanted, whole, rest);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain::linear_cross_entropy

MXTRAIN_OPERATOR(linear_cross_entropy_onednn, registry) {
  registry.AddKernel({"linear_cross_entropy", mxtrain::DeviceType::kCPU, "onednn", 100,
                      mxtrain::linear_cross_entropy::PlanOneDnn});
}
