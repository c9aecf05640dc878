// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/onnx/operator_cases.h"

#include <cmath>
#include <limits>
#include <utility>

#include "tests/unit/onnx/in_batch.h"

namespace mxtrain::test {
namespace {

// Halves and the numbers next to them; odd numbers to which float32 cannot add a half.
const Values kNearHalves = {0.49999997, -0.49999997, 0.5, -0.5,       0.50000006, -0.50000006, 1.5,
                            -1.5,       2.5,         2.5, -2.4999998, -0.1,       0,           -3},
             kOddNumbers = {8388609, -8388609, 8388607, -8388607, 16777215, 4194304.5, -4194304.5};
// x and the negative of it, rounded: a difference that is seen beside large numbers too.
Case BesideRounded(const std::string& op) {
  return {"ElementWiseSum with " + op,
          {{{7}, kOddNumbers}},
          {{"negative", {}, {"x0"}},
           {op, {}, {"negative"}},
           {"ElementWiseSum", {{"num_args", "2"}}, {"x0", op}}}};
}

}  // namespace

std::vector<Case> LayerCases() {
  // Layers that read the steps of a sequence, which come first.
  const Step steps_first{"SwapAxis", {{"dim1", "0"}, {"dim2", "1"}}, {"x0"}};
  const auto recurrent = [&](const std::string& mode, const std::string& layers, const Kwargs& more,
                             const std::string& variant) -> Case {
    Kwargs params{{"mode", mode}, {"state_size", "3"}, {"num_layers", layers}};
    params.insert(params.end(), more.begin(), more.end());
    return {"RNN " + variant, {{{4, 5}}}, {steps_first, {"RNN", params, {"SwapAxis"}}}};
  };
  // Scores of steps that say classes more than once, with blanks between some.
  const Input said{{6, 3},
                   {1, 3, 0.5, 1.2, 2, 0, 4, 0, 1, 0, 1, 3, 0.1, 0.2, 0.5, 0, 2, 1.5, 2, 1}};
  const Kwargs window{{"kernel", "(3, 2)"}, {"stride", "(2, 1)"}, {"pad", "(1, 0)"}};
  const auto with = [](Kwargs params, const Kwargs& more) {
    params.insert(params.end(), more.begin(), more.end());
    return params;
  };
  return {
      One("Activation", {{"act_type", "relu"}}, {kRow}),
      One("AdaptiveAvgPooling2D", {{"output_size", "(4, 3)"}}, {kImage}),
      One("BatchNorm", {{"fix_gamma", "False"}}, {kImage}),
      One("BilinearResize2D", {{"height", "9"}, {"width", "5"}}, {kImage}),
      One("BilinearSampler", {}, {kImage, {{2, 5, 3}}}),
      One("Cast", {{"dtype", "int32"}}, {kRow}),
      One("Concat", {{"num_args", "2"}}, {kSequence, {{3, 6}}}),
      One("Convolution", with(window, {{"num_filter", "6"}, {"num_group", "2"}}), {kImage}),
      One("Convolution", {{"kernel", "(3,)"}, {"dilate", "(2,)"}, {"num_filter", "3"}}, {{{4, 9}}},
          "of sequences"),
      One("Convolution", {{"kernel", "(2, 3, 2)"}, {"pad", "(1, 1, 0)"}, {"num_filter", "3"}},
          {{{2, 4, 5, 3}}}, "of volumes"),
      One("Convolution", {{"kernel", "(3, 2)"}, {"pad", "same"}, {"num_filter", "3"}}, {kImage},
          "same"),
      One("Convolution",
          {{"kernel", "(3, 3)"},
           {"dilate", "(2, 3)"},
           {"stride", "(2, 1)"},
           {"pad", "same"},
           {"num_filter", "3"}},
          {kImage}, "same dilated"),
      One("Convolution",
          {{"kernel", "(1, 1)"}, {"stride", "(3, 4)"}, {"pad", "same"}, {"num_filter", "3"}},
          {{{4, 6, 8}}}, "same with gaps"),
      One("Crop", {{"h_w", "(4, 3)"}, {"center_crop", "True"}}, {kImage}),
      One("Deconvolution",
          {{"kernel", "(3, 2)"},
           {"stride", "(2, 3)"},
           {"pad", "(1, 0)"},
           {"adj", "(1, 2)"},
           {"num_filter", "6"},
           {"num_group", "2"},
           {"no_bias", "False"}},
          {kImage}),
      One("Deconvolution",
          {{"kernel", "(4, 3)"},
           {"stride", "(2, 2)"},
           {"target_shape", "(11, 13)"},
           {"num_filter", "2"}},
          {kImage}, "to a size"),
      One("Deconvolution", {{"kernel", "(3,)"}, {"dilate", "(2,)"}, {"num_filter", "3"}},
          {{{4, 9}}}, "of sequences"),
      One("ElementWiseSum", {{"num_args", "3"}}, {kRow, kRow, kRow}),
      BesideRounded("round"),
      BesideRounded("rint"),
      One("dice_loss", {}, {{{3, 4, 5}}, Numbers({4, 5}, {0, 2, 1, 1, -1, 0, 7})}),
      One("Embedding", {{"input_dim", "5"}, {"output_dim", "3"}},
          {Numbers({4}, {0, 4, 2, 1, 3, 9, -2})}),
      One("EmbeddingBag", {{"input_dim", "6"}, {"output_dim", "3"}, {"padding", "5"}},
          {Numbers({4}, {0, 5, 2, 1, 3, 5, 5})}, "with padding"),
      One("EmbeddingBag", {{"input_dim", "6"}, {"output_dim", "3"}},
          {Numbers({4}, {0, 5, 2, 1, 3, 9, -2})}),
      One("FullyConnected", {{"num_hidden", "3"}}, {kImage}),
      One("GridGenerator", {{"transform_type", "affine"}, {"target_shape", "(4, 5)"}}, {{{6}}},
          "affine"),
      One("GridGenerator", {{"transform_type", "warp"}}, {{{2, 4, 5}}}, "warp"),
      One("GroupNorm", {{"num_groups", "2"}}, {kImage}),
      One("IdentityAttachKLSparseReg", {}, {kRow}),
      One("InstanceNorm", {}, {kImage}),
      One("L2Normalization", {}, {kImage}),
      One("LRN", {{"nsize", "3"}}, {kImage}),
      One("LayerNorm", {}, {kImage}),
      {"LeakyReLU", {kImage}, {{"LeakyReLU", {{"act_type", "leaky"}}}}},
      One("Pad", {{"mode", "constant"}, {"pad_width", "(0, 0, 0, 0, 1, 2, 0, 3)"}}, {kImage}),
      One("Pooling", with(window, {{"pool_type", "max"}}), {kImage}),
      One("Pooling",
          {{"kernel", "(3,)"}, {"stride", "(2,)"}, {"pad", "(1,)"}, {"pool_type", "avg"}},
          {{{4, 9}}}, "of sequences"),
      One("Pooling",
          {{"kernel", "(2, 3, 2)"}, {"pool_type", "sum"}, {"pooling_convention", "full"}},
          {{{2, 4, 5, 3}}}, "of volumes"),
      One("Pooling", {{"kernel", "(1,)"}, {"global_pool", "True"}, {"pool_type", "sum"}},
          {{{4, 9}}}, "of whole sequences"),
      One("Pooling",
          {{"kernel", "(3, 2)"}, {"stride", "(2, 2)"}, {"pad", "same"}, {"pool_type", "max"}},
          {{{4, 5, 7}}}, "same"),
      One("Pooling",
          {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}, {"pad", "same"}, {"pool_type", "avg"}},
          {{{4, 5, 7}}}, "same of means"),
      One("Pooling",
          {{"kernel", "(1, 1)"}, {"stride", "(3, 4)"}, {"pad", "same"}, {"pool_type", "max"}},
          {{{4, 6, 8}}}, "same with gaps"),
      One("RMSNorm", {}, {kImage}),
      One("ROIAlign", {{"pooled_size", "(2, 3)"}, {"spatial_scale", "0.5"}},
          {kImage, Numbers({5}, {0, 1, 2, 9, 8, 2, 4, 0, 11.5, 12, -1, 0, 0, 9, 9})}),
      One("ROIAlign",
          {{"pooled_size", "(2, 2)"},
           {"spatial_scale", "1"},
           {"sample_ratio", "2"},
           {"aligned", "True"}},
          {kImage, Numbers({5}, {1, 1, 2, 5, 4, 2, 0, 0.5, 3.5, 6, 0, 2, 1, 4, 3})}, "aligned"),
      One("ROIPooling", {{"pooled_size", "(2, 3)"}, {"spatial_scale", "0.5"}},
          {kImage, Numbers({5}, {0, 1, 2, 9, 8, 2, 4, 0, 11, 10, -1, 0, 0, 9, 9})}),
      One("Reshape", {{"shape", "(0, -1, 2)"}}, {kSequence}),
      One("SequenceLast", {{"axis", "1"}}, {kSequence}),
      One("SequenceLast", {{"use_sequence_length", "True"}, {"axis", "1"}},
          {kImage, Numbers({}, {2, 9, 0})}, "of lengths"),
      One("SequenceMask", {{"axis", "1"}}, {kSequence}),
      One("SequenceMask", {{"use_sequence_length", "True"}, {"axis", "1"}, {"value", "-2"}},
          {kImage, Numbers({}, {2, 9, 0})}, "of lengths"),
      One("SequenceReverse", {}, {kSequence}),
      recurrent("rnn_relu", "1", {}, "with relu"),
      recurrent("rnn_tanh", "2", {{"bidirectional", "True"}}, "with tanh"),
      recurrent("lstm", "2", {{"bidirectional", "True"}, {"state_outputs", "True"}}, "of LSTM"),
      recurrent("gru", "2", {{"state_outputs", "True"}}, "of GRU"),
      {"RNN of lengths",
       {{{4, 5}}, Numbers({}, {2, 4, 1}), {{2}}},
       {steps_first,
        {"expand_dims", {{"axis", "0"}}, {"x2"}},
        {"RNN",
         {{"mode", "rnn_tanh"},
          {"state_size", "2"},
          {"num_layers", "1"},
          {"use_sequence_length", "True"}},
         {"SwapAxis", "parameters", "expand_dims", "x1"}}}},
      {"RNN from states",
       {{{4, 5}}, {{3}}, {{3}}},
       {steps_first,
        {"expand_dims", {{"axis", "0"}}, {"x1"}},
        {"stack", {{"num_args", "1"}, {"axis", "0"}}, {"x2"}},
        {"RNN",
         {{"mode", "lstm"}, {"state_size", "3"}, {"num_layers", "1"}},
         {"SwapAxis", "parameters", "expand_dims", "stack"}}}},
      {"ctc_greedy_decoder", {said}, {steps_first, {"ctc_greedy_decoder", {}, {"SwapAxis"}}}},
      {"ctc_greedy_decoder of lengths",
       {said, Numbers({}, {6, 2, 0})},
       {steps_first,
        {"ctc_greedy_decoder",
         {{"use_data_lengths", "True"}, {"blank_label", "last"}},
         {"SwapAxis", "x1"}}}},
      {"SequenceReverse of lengths",
       {kImage, Numbers({}, {2, 9, 3})},
       {{"SwapAxis", {{"dim1", "0"}, {"dim2", "1"}}, {"x0"}},
        {"SequenceReverse", {{"use_sequence_length", "True"}}, {"SwapAxis", "x1"}}}},
      {"SequenceLast of steps first",
       {kImage, Numbers({}, {2, 1, 3})},
       {{"SwapAxis", {{"dim1", "0"}, {"dim2", "1"}}, {"x0"}},
        {"SequenceLast", {{"use_sequence_length", "True"}}, {"SwapAxis", "x1"}}}},
      One("SliceChannel", {{"num_outputs", "2"}}, {kSequence}),
      One("SoftmaxActivation", {{"mode", "channel"}}, {kImage}),
      One("SpatialTransformer",
          {{"target_shape", "(5, 4)"}, {"transform_type", "affine"}, {"sampler_type", "bilinear"}},
          {kImage, Numbers({6}, {0.7, 0.1, -0.2, 0.2, 1.1, 0.3})}),
      One("SwapAxis", {{"dim1", "1"}, {"dim2", "2"}}, {kImage}),
      {"UpSampling",
       {kImage},
       {{"UpSampling", {{"scale", "2"}, {"sample_type", "nearest"}, {"num_args", "1"}}}}},
      {"ArcFace", {kRow}, {{"ArcFace", {{"num_hidden", "4"}}}}, "cosine"},
      One("SVMOutput", {}, {kRow}),
      One("SoftmaxOutput", {}, {kRow}),
      One("LinearRegressionOutput", {}, {kRow}),
      One("LogisticRegressionOutput", {}, {kRow}),
      One("MAERegressionOutput", {}, {kRow}),
  };
}

std::vector<Case> ArrayCases() {
  const Input matrix{{4, 4}}, distinct{{6}, {3, -1, 4, 1.5, -5, 9, 2, 6, 5, 3, 3, 7}};
  const Kwargs attention{{"heads", "2"}};
  return {
      One("arange_like", {{"axis", "1"}, {"start", "2"}, {"step", "-0.5"}}, {kRow}),
      One("argmax", {{"axis", "1"}}, {kSequence}),
      One("argmin", {{"axis", "-1"}, {"keepdims", "True"}}, {kSequence}),
      One("argmax_channel", {}, {kImage}),
      One("argsort", {}, {distinct}),
      One("argsort", {{"is_ascend", "False"}, {"dtype", "int32"}}, {distinct}, "descending"),
      One("batch_dot", {{"transpose_b", "True"}}, {kSequence, {{3, 6}}}),
      One("batch_take", {}, {kRow, Numbers({}, {0, 4, 9})}),
      {"boolean_mask",
       {kRow, Numbers({5}, {0, 3, -2, 0, 1})},
       {{"min", {{"axis", "0"}}, {"x0"}},
        {"max", {{"axis", "0"}}, {"x1"}},
        {"boolean_mask", {{"size", "4"}}, {"min", "max"}}}},
      One("broadcast_axis", {{"axis", "1"}, {"size", "3"}}, {{{1, 4}}}),
      One("broadcast_like", {}, {{{1, 6}}, kSequence}),
      One("broadcast_to", {{"shape", "(0, 4, 6)"}}, {{{1, 6}}}),
      One("clip", {{"a_min", "-1"}, {"a_max", "0.5"}}, {kRow}),
      One("im2col", {{"kernel", "(3, 2)"}, {"stride", "(2, 1)"}, {"pad", "(1, 0)"}}, {kImage}),
      One("col2im",
          {{"kernel", "(3, 2)"},
           {"stride", "(2, 1)"},
           {"pad", "(1, 0)"},
           {"output_size", "(8, 4)"}},
          {{{12, 12}}}),
      One("cumsum", {{"axis", "1"}}, {kSequence}),
      One("cumsum", {{"axis", "1"}, {"dtype", "int32"}}, {kSequence}, "of integers"),
      One("cumsum", {{"axis", "1"}, {"dtype", "float32"}}, {kSequence}, "of float32"),
      One("depth_to_space", {{"block_size", "2"}}, {kImage}),
      One("space_to_depth", {{"block_size", "2"}}, {{{4, 6, 4}}}),
      One("diag", {{"axis1", "1"}, {"axis2", "2"}, {"k", "1"}}, {kImage}),
      One("diag", {{"axis1", "3"}, {"axis2", "1"}, {"k", "-2"}}, {kImage}, "below"),
      {"dot", {kRow, kRow}, {{"transpose", {}, {"x1"}}, {"dot", {}, {"x0", "transpose"}}}},
      One("element_mask", {}, {kImage, Numbers({}, {1, 0, 2})}),
      One("expand_dims", {{"axis", "1"}}, {kRow}),
      One("full_like", {{"fill_value", "2.5"}}, {kRow}),
      One("full_like", {{"fill_value", "2.7"}, {"dtype", "int32"}}, {kRow}, "of integers"),
      {"gather_nd",
       {kImage, Numbers({2}, {0, 1, 2, -1, 0, 1})},
       {{"transpose", {}, {"x1"}}, {"gather_nd", {}, {"x0", "transpose"}}}},
      One("gradientmultiplier", {{"scalar", "2"}}, {kRow}),
      One("image_normalize", {{"mean", "(0.4, 0.5, 0.6)"}, {"std", "(0.2, 0.3, 0.25)"}},
          {{{4, 5, 3}, {0, 255, 17, 128, 99, 201, 64}, DType::kUint8}}),
      {"interleaved_matmul_selfatt_qk",
       {{{2, 12}}},
       {{"interleaved_matmul_selfatt_qk", attention}}},
      {"interleaved_matmul_selfatt_valatt",
       {{{2, 12}}},
       {{"interleaved_matmul_selfatt_qk", attention},
        {"interleaved_matmul_selfatt_valatt", attention, {"x0", "interleaved_matmul_selfatt_qk"}}}},
      {"interleaved_matmul_encdec_qk",
       {{{2, 4}}, {{2, 8}}},
       {{"interleaved_matmul_encdec_qk", attention}}},
      {"interleaved_matmul_encdec_valatt",
       {{{2, 4}}, {{2, 8}}},
       {{"interleaved_matmul_encdec_qk", attention},
        {"interleaved_matmul_encdec_valatt", attention, {"x1", "interleaved_matmul_encdec_qk"}}}},
      One("linalg_gemm2", {{"alpha", "0.5"}}, {matrix, matrix}),
      One("logsumexp", {{"axis", "1"}}, {kSequence}),
      One("max", {{"axis", "(1, 2)"}}, {kImage}),
      One("mean", {{"axis", "(1, 2)"}}, {kImage}),
      One("min", {{"axis", "(1, 2)"}, {"keepdims", "True"}}, {kImage}),
      One("prod", {{"axis", "1"}}, {kSequence}),
      One("sum", {{"axis", "1"}, {"exclude", "True"}}, {kSequence}),
      One("nansum", {{"axis", "1"}}, {{{4}, {1, NAN, 3, 4, NAN, NAN, 2}}}),
      One("nanprod", {{"axis", "1"}}, {{{4}, {1, NAN, 3, 4, NAN, NAN, 2}}}),
      One("norm", {{"axis", "1"}}, {kSequence}),
      One("moments", {{"axes", "(1, 2)"}}, {kImage}),
      One("one_hot", {{"depth", "4"}, {"on_value", "3"}, {"off_value", "-1"}},
          {Numbers({2}, {0, 3, -1, 4, 1.7, 2})}),
      One("one_hot", {{"depth", "4"}, {"dtype", "int64"}}, {Numbers({2}, {0, 3, 2})}, "integers"),
      One("pick", {}, {kRow, Numbers({}, {0, 9, 3})}),
      One("pick", {{"axis", "1"}, {"keepdims", "True"}, {"mode", "wrap"}},
          {kSequence, Numbers({6}, {0, -1, 3, 4, 6, 2})}, "modulo the length"),
      One("quadratic", {{"a", "2"}, {"b", "-1"}, {"c", "0.5"}}, {kRow}),
      One("repeat", {{"repeats", "2"}, {"axis", "1"}}, {kSequence}),
      One("reshape_like", {}, {kSequence, {{3, 8}}}),
      One("reverse", {{"axis", "(0, 2)"}}, {kSequence}),
      One("roll", {{"shift", "2"}, {"axis", "1"}}, {kSequence}),
      One("rint", {}, {{{7}, kNearHalves}}),
      One("round", {}, {{{7}, kNearHalves}}),
      One("round_ste", {}, {{{7}, kNearHalves}}),
      One("rotary_embedding", {{"base", "50"}}, {{{3, 5, 6}}}),
      One("rotary_embedding", {{"rotary_dim", "4"}, {"interleaved", "True"}}, {{{3, 5, 7}}},
          "neighbours of a part"),
      One("scaled_dot_product_attention", {{"is_causal", "True"}}, {kImage, kImage, kImage}),
      One("scaled_dot_product_attention", {{"is_causal", "True"}, {"sliding_window", "2"}},
          {{{4, 5, 3}}, {{2, 5, 3}}, {{2, 5, 6}}}, "heads that share keys"),
      One("scaled_dot_product_attention", {{"dropout_p", "0.5"}, {"mask", "boolean"}},
          {kImage, kImage, kImage, Numbers({1, 6, 6}, {1, 1, 0, 1, 0, 1, 1})}, "with dropout"),
      {"scatter_nd",
       {kRow, Numbers({2}, {0, 1, 3, 2, -1, 0})},
       {{"transpose", {}, {"x1"}}, {"scatter_nd", {{"shape", "(4, 3, 5)"}}, {"x0", "transpose"}}}},
      One("slice", {{"begin", "(None, 3)"}, {"end", "(None, None)"}, {"step", "(1, -2)"}}, {kRow}),
      One("slice_axis", {{"axis", "1"}, {"begin", "1"}, {"end", "3"}}, {kRow}),
      One("slice_like", {{"axes", "(1,)"}}, {kSequence, {{2, 6}}}),
      One("smooth_l1", {{"scalar", "1.5"}}, {kRow}),
      One("softmax", {{"use_length", "True"}}, {kRow, Numbers({}, {2, 5, 0})}, "of lengths"),
      One("log_softmax", {{"use_length", "True"}}, {kRow, Numbers({}, {2, 5, 3})}, "of lengths"),
      One("sort", {{"is_ascend", "False"}, {"axis", "1"}}, {kSequence}),
      One("squeeze", {{"axis", "1"}}, {{{1, 4}}}),
      One("stack", {{"num_args", "2"}, {"axis", "1"}}, {kRow, kRow}),
      One("take", {{"axis", "1"}}, {kSequence, Numbers({2}, {0, 9, 2, -3})}),
      One("take", {{"axis", "1"}, {"mode", "wrap"}}, {kSequence, Numbers({2}, {0, 9, 2, -3})},
          "modulo the length"),
      One("tile", {{"reps", "(1, 2, 3)"}}, {kSequence}),
      One("topk", {{"k", "3"}}, {distinct}),
      One("topk", {{"k", "2"}, {"ret_typ", "both"}, {"dtype", "int64"}, {"is_ascend", "True"}},
          {distinct}, "both"),
      One("topk", {{"k", "2"}, {"ret_typ", "mask"}}, {distinct}, "mask"),
      One("topk", {{"k", "0"}, {"ret_typ", "value"}, {"axis", "1"}}, {kSequence}, "all values"),
      One("transpose", {{"axes", "(0, 2, 1)"}}, {kSequence}),
      One("where", {}, {Numbers({5}, {1, 0, 0, 2}), kRow, kRow}),
      {"where of integers",
       {Numbers({5}, {1, 0, 0, 2}), kRow},
       {{"full_like", {{"fill_value", "-2.7"}, {"dtype", "int64"}}, {"x1"}},
        {"Cast", {{"dtype", "float32"}}, {"full_like"}},
        {"where", {}, {"x0", "Cast", "x1"}}}},
      One("_zeros", {{"shape", "(2, 3)"}}, {}),
      One("_ones", {{"shape", "(2, 3)"}, {"dtype", "int32"}}, {}),
      One("_full", {{"shape", "(2,)"}, {"value", "1.5"}}, {}),
      One("_arange", {{"start", "1"}, {"stop", "4"}, {"repeat", "2"}}, {}),
      One("_linspace", {{"start", "1"}, {"stop", "2"}, {"num", "4"}}, {}),
      One("_eye", {{"N", "3"}, {"M", "4"}, {"k", "1"}}, {}),
  };
}

// --- boxes ---

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Rows of a class from -1 on, a score that no other row has, a box, and the number of the row.
Input Detections(int64_t boxes, bool center = false) {
  constexpr int64_t kColumns = 7;
  Values rows;
  for (int64_t i = 0; i < kBatch * boxes; ++i) {
    const auto at = static_cast<double>(i);
    const double score = std::fmod(at * 0.6180339887, 1) - 0.1;
    const double x = std::fmod(at * 7.3, 20), y = std::fmod(at * 3.1, 11);
    const double width = 5 + std::fmod(at * 1.7, 6), height = 4 + std::fmod(at * 2.3, 5);
    rows.insert(rows.end(), {std::fmod(at, 4) - 1, score});
    if (center) {
      rows.insert(rows.end(), {x + width / 2, y + height / 2, width, height});
    } else {
      rows.insert(rows.end(), {x, y, x + width, y + height});
    }
    rows.push_back(at);
  }
  return {{boxes, kColumns}, rows};
}

// Of the scores of two classes and the background, and offsets that some boxes take beyond the
// edges.
Case OfAnchors(const std::string& format) {
  const std::string prior = "_contrib_MultiBoxPrior";
  return {"AnchorBoxes of anchors by " + format,
          {{{6, 3}}, Numbers({6, 4}, {0.3, -1, 2.5, 1.5, 0.7, -3, 2, 30}), {{2, 2, 3}}},
          {{prior, {{"sizes", "(0.4,)"}}, {"x2"}},
           {"AnchorBoxes", {{"size", "(30, 40)"}, {"format", format}}, {"x0", "x1", prior}}}};
}

}  // namespace

namespace {

// Of images of 20 x 16 pixels, with maps of two levels.
Case OfPyramid(const std::string& candidates, const std::string& count) {
  return One("PyramidProposals",
             {{"strides", "(4, 8)"},
              {"sizes", "(7, 15)"},
              {"ratios", "(0.5, 1.5)"},
              {"candidates", candidates},
              {"count", count},
              {"overlap", "0.4"},
              {"least_side", "3"}},
             {{{2, 4, 5}},
              {{2, 2, 3}},
              {{8, 4, 5}},
              Numbers({8, 2, 3}, {0.3, -1, 0.5, 1.5, 0.7, -3, 2, 30})},
             "of " + candidates);
}
const Input kRegions = Numbers({4, 5}, {0,  3, 4, 115, 116, 0, 0, 0, 224, 224, 0, 1, 1, 3, 450,
                                        -1, 3, 4, 115, 116, 0, 5, 5, 300, 280, 0, 9, 9, 4, 4});
Case OfRegionLevel(const std::string& output) {
  Case levels = One("RegionLevels", {}, {kRegions}, output);
  levels.output = output;
  levels.steps.insert(levels.steps.begin(), {"Reshape", {{"shape", "(-1, 5)"}}, {"x0"}});
  levels.steps.back().inputs = {"Reshape"};
  return levels;
}

}  // namespace

std::vector<Case> BoxCases() {
  const Input boxes = Numbers({3, 4}, {0, 0, 4, 4, 2, 1, 5, 6, 4, 4, 3, 5, 1, 1, 1, 1}),
              others = Numbers({2, 4}, {1, 0, 5, 3, 2, 2, 2, 4, 0, 0, 9, 9});
  const std::string nms = "_contrib_box_nms";
  return {
      One("_contrib_box_iou", {}, {boxes, others}),
      One("_contrib_box_iou", {{"format", "center"}}, {boxes, others}, "of centers"),
      One(nms, {{"overlap_thresh", "0.3"}}, {Detections(15)}),
      One(nms, {{"overlap_thresh", "0.2"}, {"id_index", "0"}, {"topk", "11"}}, {Detections(15)},
          "of classes"),
      One(nms,
          {{"overlap_thresh", "0.3"},
           {"id_index", "0"},
           {"background_id", "1"},
           {"force_suppress", "True"},
           {"valid_thresh", "0.25"},
           {"in_format", "center"},
           {"out_format", "center"}},
          {Detections(15, true)}, "of all classes"),
      One(nms, {{"valid_thresh", "2"}}, {Detections(5)}, "of none"),
      // Equal scores, corners on wrong sides, a class that no net has, a score that is NaN.
      One(nms,
          {{"overlap_thresh", "0.3"}, {"id_index", "0"}, {"valid_thresh", "0.1"}, {"topk", "4"}},
          {Numbers({6, 6}, {0, 0.5, 0, 0, 4, 4, 0, 0.5,  1, 0, 5, 4, 0,   0.9, 4, 0, 0, 4,
                            1, 0.5, 0, 0, 4, 4, 0, kNan, 0, 0, 9, 9, 1e9, 0.1, 0, 0, 4, 4})},
          "of odd rows"),
      One(nms, {{"overlap_thresh", "0.3"}, {"topk", "4"}},
          {Numbers({3, 5, 7}, Detections(15).cycle)}, "of classes apart"),
      One("_contrib_MultiBoxPrior", {{"sizes", "(0.3, 0.7)"}, {"ratios", "(1, 2, 0.5)"}},
          {{{2, 3, 4}}}),
      One("_contrib_MultiBoxPrior",
          {{"ratios", "(2,)"}, {"steps", "(0.25, 0.2)"}, {"offsets", "(0, 1)"}, {"clip", "True"}},
          {{{2, 3, 4}}}, "of steps"),
      OfAnchors("corner"),
      OfAnchors("center"),
      One("PointBoxes", {{"strides", "(4,)"}}, {{{3, 2, 5}}, {{4, 2, 5}}}),
      One("PointBoxes", {{"strides", "(4, 8)"}},
          {{{2, 4, 6}},
           {{2, 2, 3}},
           {{4, 4, 6}},
           Numbers({4, 2, 3}, {0.3, -1, 25, 1.5, 0.7, -3, 2})},
          "of two levels"),
      One("PointBoxes", {{"strides", "(4, 8)"}, {"bins", "5"}},
          {{{2, 4, 6}}, {{2, 2, 3}}, {{20, 4, 6}}, {{20, 2, 3}}}, "of distributions"),
      One("PointBoxes", {{"strides", "(4, 8)"}, {"form", "centers"}},
          {{{2, 4, 6}}, {{2, 2, 3}}, {{4, 4, 6}}, {{4, 2, 3}}, {{1, 4, 6}}, {{1, 2, 3}}},
          "of centres"),
      One("PointBoxes", {{"strides", "(8,)"}, {"form", "centers"}, {"clip", "False"}},
          {{{1, 2, 3}}, Numbers({4, 2, 3}, {0.3, -1, 25, 1.5, 0.7, -3, 2}), {{1, 2, 3}}},
          "of centres beyond the edges"),
      OfPyramid("1000", "70"),
      OfPyramid("5", "4"),
      OfRegionLevel("output0"),
      OfRegionLevel("output2"),
      One("RegionBoxes", {{"least_side", "5"}},
          {kRegions,
           {{4, 3}},
           Numbers({4, 12}, {0.3, -1, 2.5, 1.5, 0.7, -3, 2, 30}),
           {{1, 280, 300}}}),
  };
}

}  // namespace mxtrain::test
