// SPDX-License-Identifier: Apache-2.0
// The parts of multi-head attention as in MXNet, on sequences [length, batch, features] whose
// features are those of one head after the other; a head has its query, key and value (selfatt), or
// its key and value (encdec), side by side:
//
//   selfatt_qk(qkv [L, N, heads * 3 * depth])                          [N * heads, L, L]
//   selfatt_valatt(qkv, attention [N * heads, L, L])                   [L, N, heads * depth]
//   encdec_qk(queries [Q, N, heads * depth], kv [L, N, heads * 2 * depth])   [N * heads, Q, L]
//   encdec_valatt(kv, attention [N * heads, Q, L])                     [Q, N, heads * depth]
//
// The _qk forms are products of query and key, divided by the root of the depth; the _valatt forms
// are attention times value. div_sqrt_dim divides by the root of the last axis's length.
#include <cmath>

#include "mxtrain/operator/composite.h"

namespace mxtrain {
namespace {

struct HeadsParam : Parameter<HeadsParam> {
  int64_t heads;
  static void Declare(Fields<HeadsParam>& f) {
    f.Add("heads", &HeadsParam::heads).Required().Range(1).Help("attention heads");
  }
};

// Checks that `shape`, if known, is [length, batch, features] with features for all heads.
void CheckSequence(const TShape& shape, int64_t parts, int64_t heads, const char* who,
                   const char* name) {
  if (!shape.known()) return;
  if (shape.ndim() == 3 && shape[2] % (parts * heads) == 0) return;
  Throw(ErrorKind::kConfig,
        "{}: {} has shape {}; expected [length, batch, features] with features divisible by {} "
        "(heads = {}, {} for each)",
        who, name, shape.ToString(), parts * heads, heads, parts);
}

// Part `part` of `parts` of every head, as matrices [batch * heads, length, depth].
Lowering::Value HeadsOf(Lowering& g, int argument, int64_t heads, int64_t parts, int64_t part) {
  const TShape& shape = g.shape(argument);
  const int64_t length = shape[0], batch = shape[1], depth = shape[2] / (heads * parts);
  auto value = g.Reshape(g.argument(argument), {length, batch, heads, parts, depth});
  if (parts > 1) {
    value = g("slice_axis", {value},
              {{"axis", "3"}, {"begin", params::Print(part)}, {"end", params::Print(part + 1)}});
  }
  value = g("transpose", {value}, {{"axes", "(1, 2, 3, 0, 4)"}});
  return g.Reshape(value, {batch * heads, length, depth});
}

// query key^T / sqrt(depth), [batch * heads, queries, keys].
void LowerScores(Lowering& g, Lowering::Value query, Lowering::Value key, int64_t depth) {
  const auto scaled = g.WithScalar("_mul_scalar", query, 1 / std::sqrt(static_cast<double>(depth)));
  g.SetOutput(0, g("batch_dot", {scaled, key}, {{"transpose_b", "True"}}));
}
// Argument 1 times the values, [queries, batch, heads * depth].
void LowerMeans(Lowering& g, int64_t heads, Lowering::Value value, int64_t depth) {
  const TShape& attention = g.shape(1);
  const int64_t batch = attention[0] / heads, queries = attention[1];
  auto mean = g("batch_dot", {g.argument(1), value});
  mean = g.Reshape(mean, {batch, heads, queries, depth});
  mean = g("transpose", {mean}, {{"axes", "(2, 0, 1, 3)"}});
  g.SetOutput(0, g.Reshape(mean, {queries, batch, heads * depth}));
}
// The attention that belongs to a sequence of keys and values.
void CheckAttention(const TShape& sequence, bool self, int64_t heads, const char* who,
                    TShape* attention) {
  if (!sequence.known()) return;
  TShape expected = TShape::OfRank(3);
  expected[0] = sequence[1] * heads;
  expected[2] = sequence[0];
  if (self) expected[1] = sequence[0];
  UnifyShape(expected, attention, who, "attention");
}

void AddSelfAttention(OperatorRegistry& registry) {
  AddComposite<HeadsParam>(
      registry,
      {.name = "interleaved_matmul_selfatt_qk",
       .description = "products of queries and keys, which alternate with values, over sqrt(depth)",
       .aliases = {"_contrib_interleaved_matmul_selfatt_qk"},
       .arguments = {"queries_keys_values"},
       .complete =
           [](const HeadsParam& param, std::vector<TShape>* in) {
             CheckSequence((*in)[0], 3, param.heads, "interleaved_matmul_selfatt_qk",
                           "queries_keys_values");
           },
       .lower =
           [](const HeadsParam& param, Lowering& g) {
             LowerScores(g, HeadsOf(g, 0, param.heads, 3, 0), HeadsOf(g, 0, param.heads, 3, 1),
                         g.shape(0)[2] / (3 * param.heads));
           }});
  AddComposite<HeadsParam>(
      registry, {.name = "interleaved_matmul_selfatt_valatt",
                 .description = "attention times values, which alternate with queries and keys",
                 .aliases = {"_contrib_interleaved_matmul_selfatt_valatt"},
                 .arguments = {"queries_keys_values", "attention"},
                 .complete =
                     [](const HeadsParam& param, std::vector<TShape>* in) {
                       constexpr const char* kWho = "interleaved_matmul_selfatt_valatt";
                       CheckSequence((*in)[0], 3, param.heads, kWho, "queries_keys_values");
                       CheckAttention((*in)[0], true, param.heads, kWho, &(*in)[1]);
                     },
                 .lower =
                     [](const HeadsParam& param, Lowering& g) {
                       LowerMeans(g, param.heads, HeadsOf(g, 0, param.heads, 3, 2),
                                  g.shape(0)[2] / (3 * param.heads));
                     }});
}

void AddEncoderDecoder(OperatorRegistry& registry) {
  AddComposite<HeadsParam>(
      registry,
      {.name = "interleaved_matmul_encdec_qk",
       .description = "products of queries and keys, which alternate with values, over sqrt(depth)",
       .aliases = {"_contrib_interleaved_matmul_encdec_qk"},
       .arguments = {"queries", "keys_values"},
       .complete =
           [](const HeadsParam& param, std::vector<TShape>* in) {
             constexpr const char* kWho = "interleaved_matmul_encdec_qk";
             const TShape &queries = (*in)[0], &keys = (*in)[1];
             CheckSequence(queries, 1, param.heads, kWho, "queries");
             CheckSequence(keys, 2, param.heads, kWho, "keys_values");
             if (!queries.known() || !keys.known()) return;
             if (queries[1] == keys[1] && 2 * queries[2] == keys[2]) return;
             Throw(ErrorKind::kConfig,
                   "{}: queries {} and keys_values {} must have equal batches (axis 1), and "
                   "keys_values twice as many features",
                   kWho, queries.ToString(), keys.ToString());
           },
       .lower =
           [](const HeadsParam& param, Lowering& g) {
             LowerScores(g, HeadsOf(g, 0, param.heads, 1, 0), HeadsOf(g, 1, param.heads, 2, 0),
                         g.shape(0)[2] / param.heads);
           }});
  AddComposite<HeadsParam>(registry,
                           {.name = "interleaved_matmul_encdec_valatt",
                            .description = "attention times values, which alternate with keys",
                            .aliases = {"_contrib_interleaved_matmul_encdec_valatt"},
                            .arguments = {"keys_values", "attention"},
                            .complete =
                                [](const HeadsParam& param, std::vector<TShape>* in) {
                                  constexpr const char* kWho = "interleaved_matmul_encdec_valatt";
                                  CheckSequence((*in)[0], 2, param.heads, kWho, "keys_values");
                                  CheckAttention((*in)[0], false, param.heads, kWho, &(*in)[1]);
                                },
                            .lower =
                                [](const HeadsParam& param, Lowering& g) {
                                  LowerMeans(g, param.heads, HeadsOf(g, 0, param.heads, 2, 1),
                                             g.shape(0)[2] / (2 * param.heads));
                                }});
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(interleaved_matmul, registry) {
  using namespace mxtrain;
  AddSelfAttention(registry);
  AddEncoderDecoder(registry);
  AddComposite<NoParam>(
      registry, {.name = "div_sqrt_dim",
                 .description = "the data over the root of the last axis's length",
                 .aliases = {"_contrib_div_sqrt_dim"},
                 .complete =
                     [](const NoParam&, std::vector<TShape>* in) {
                       if ((*in)[0].has_rank() && (*in)[0].ndim() == 0) {
                         Throw(ErrorKind::kConfig, "div_sqrt_dim: the data have no axis");
                       }
                     },
                 .lower =
                     [](const NoParam&, Lowering& g) {
                       const TShape& shape = g.shape(0);
                       const auto last = static_cast<double>(shape[shape.ndim() - 1]);
                       g.SetOutput(0, g.WithScalar("_div_scalar", g.argument(0), std::sqrt(last)));
                     }});
}
