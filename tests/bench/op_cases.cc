// SPDX-License-Identifier: Apache-2.0
#include "op_cases.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <sstream>

#include "mxtrain/base/format.h"

namespace mxtrain::bench {
namespace {

constexpr const char* kSizeNames[] = {"small", "medium", "large"};

// {0}, {1}, ... in the texts of a case, for each size.
struct Sizes {
  int64_t numbers[3][4];
};
constexpr Sizes kFlat = {{{4096}, {131072}, {8388608}}};
constexpr Sizes kRows = {{{16, 256}, {128, 1000}, {8192, 1000}}};
constexpr Sizes kSorted = {{{16, 256}, {128, 1000}, {4096, 1000}}};
constexpr Sizes kImages = {{{1, 16, 16}, {8, 32, 28}, {32, 64, 64}}};  // N, C, H = W
constexpr Sizes kResized = {{{1, 16, 8, 16}, {8, 32, 14, 28}, {32, 64, 32, 64}}};
constexpr Sizes kFeatures = {{{1, 16, 14}, {4, 64, 28}, {32, 64, 56}}};          // of a convolution
constexpr Sizes kHeads = {{{1, 16, 4, 64}, {4, 64, 8, 64}, {16, 256, 32, 64}}};  // of attention
// Images, heads, tokens, depth of a head: ViT-Ti, ViT-B, and a long sequence.
constexpr Sizes kTokens = {{{1, 3, 197, 64}, {8, 12, 197, 64}, {1, 8, 4096, 64}}};
// Indices, rows, length of a row.
constexpr Sizes kWords = {{{64, 100, 32}, {1024, 2000, 128}, {16384, 50000, 256}}};
// Length of each of two indexed axes, of the third, number of indices.
constexpr Sizes kGrids = {{{8, 16, 64}, {32, 64, 1024}, {256, 64, 65536}}};
constexpr Sizes kDense = {{{16, 64, 64}, {64, 512, 512}, {1024, 2048, 2048}}};
// Steps, batch, units, layers: small, and the small and medium nets of Zaremba et al. (2014).
constexpr Sizes kSequences = {{{16, 4, 32, 1}, {35, 20, 200, 2}, {35, 20, 650, 2}}};
constexpr Sizes kBatches = {{{4, 32}, {24, 64}, {256, 128}}};  // of square matrices

constexpr const char *kVector = "{0}", *kVectors = "{0} {0}", *kMatrix = "{0},{1}",
                     *kImage = "{0},{1},{2},{2}", *kTwoImages = "{0},{1},{2},{2} {0},{1},{2},{2}",
                     *kPerChannel = "{0},{1},{2},{2} 1,{1},1,1",
                     *kPerPlane = "{0},{1},{2},{2} {0},{1},1,1", *kPerColumn = "{0},{1} 1,{1}",
                     *kMatrices = "{0},{1},{1} {0},{1},{1}",
                     *kQueriesKeysValues = "{0},{1},{2},{3} {0},{1},{2},{3} {0},{1},{2},{3}";

struct Row {
  const char* name;    // the operator, up to the slash
  const char* kwargs;  // "key=value key=value"
  const char* shapes;
  const Sizes& sizes;
  const char* values = "-1..1";  // "-1..1 <10": uniform in [-1, 1); integers from 0 to 9
};

constexpr Row kTable[] = {
    {"_copy", "", kVector, kFlat},
    {"Activation/relu", "act_type=relu", kVector, kFlat},
    {"Activation/sigmoid", "act_type=sigmoid", kVector, kFlat, "-4..4"},
    {"Activation/tanh", "act_type=tanh", kVector, kFlat, "-4..4"},
    {"exp", "", kVector, kFlat, "-4..4"},
    {"log", "", kVector, kFlat, "0.1..10"},
    {"sqrt", "", kVector, kFlat, "0.1..10"},
    {"square", "", kVector, kFlat},
    {"abs", "", kVector, kFlat},
    {"erf", "", kVector, kFlat, "-4..4"},
    {"gelu", "", kVector, kFlat, "-4..4"},
    {"silu", "", kVector, kFlat, "-4..4"},
    {"mish", "", kVector, kFlat, "-4..4"},
    {"hard_swish", "", kVector, kFlat, "-4..4"},
    {"smooth_l1", "scalar=1", kVector, kFlat, "-2..2"},
    {"clip", "a_min=-0.5 a_max=0.5", kVector, kFlat},
    {"elemwise_add", "", kVectors, kFlat},
    {"elemwise_mul", "", kVectors, kFlat},
    {"elemwise_div", "", kVectors, kFlat, "-1..1 0.5..2"},
    {"_power", "", kVectors, kFlat, "0.1..2 -2..2"},
    {"ElementWiseSum", "num_args=3", "{0} {0} {0}", kFlat},
    {"where", "", "{0} {0} {0}", kFlat, "<2 -1..1"},
    {"Cast/float16", "dtype=float16", kVector, kFlat},
    {"Dropout", "p=0.5", kVector, kFlat},
    {"broadcast_add/channel", "", kPerChannel, kImages},
    {"broadcast_add/plane", "", kPerPlane, kImages},
    {"broadcast_add/last", "", kPerColumn, kRows},
    {"broadcast_mul/channel", "", kPerChannel, kImages},
    {"broadcast_mul/plane", "", kPerPlane, kImages},
    {"broadcast_mul/last", "", kPerColumn, kRows},
    {"broadcast_to/channel", "shape=({0},{1},{2},{2})", "1,{1},1,1", kImages},
    {"sum/all", "", kVector, kFlat},
    {"sum/last", "axis=-1", kMatrix, kRows},
    {"sum/first", "axis=0", kMatrix, kRows},
    {"sum/channel", "axis=(0,2,3)", kImage, kImages},
    {"mean/all", "", kVector, kFlat},
    {"mean/last", "axis=-1", kMatrix, kRows},
    {"mean/first", "axis=0", kMatrix, kRows},
    {"mean/channel", "axis=(0,2,3)", kImage, kImages},
    {"max/all", "", kVector, kFlat},
    {"max/last", "axis=-1", kMatrix, kRows},
    {"max/first", "axis=0", kMatrix, kRows},
    {"max/channel", "axis=(0,2,3)", kImage, kImages},
    {"norm", "", kVector, kFlat},
    {"argmax/last", "axis=-1", kMatrix, kRows},
    {"argmax/axis1", "axis=1", kImage, kImages},
    {"softmax/last", "axis=-1", kMatrix, kRows, "-4..4"},
    {"softmax/axis1", "axis=1", kImage, kImages, "-4..4"},
    {"log_softmax/last", "axis=-1", kMatrix, kRows, "-4..4"},
    {"log_softmax/axis1", "axis=1", kImage, kImages, "-4..4"},
    {"SoftmaxOutput", "", "{0},{1} {0}", kRows, "-4..4 <{1}"},
    {"LayerNorm", "", kMatrix, kRows},
    {"RMSNorm", "", kMatrix, kRows},
    {"GroupNorm", "num_groups=8", "{0},{1},{2},{2} {1} {1}", kImages},
    {"InstanceNorm", "", kImage, kImages},
    {"L2Normalization/channel", "mode=channel", kImage, kImages},
    {"BatchNorm", "fix_gamma=0", kImage, kImages},
    {"LRN", "nsize=5", kImage, kImages},
    {"transpose/2d", "", kMatrix, kRows},
    {"transpose/nhwc", "axes=(0,2,3,1)", kImage, kImages},
    {"transpose/0213", "axes=(0,2,1,3)", "{0},{1},{2},{3}", kHeads},
    {"SwapAxis", "dim1=1 dim2=2", kImage, kImages},
    {"slice/crop", "begin=(0,0,2,2) end=({0},{1},{2},{2})", kImage, kImages},
    {"slice/step2", "begin=(0,0,0,0) end=({0},{1},{2},{2}) step=(1,1,2,2)", kImage, kImages},
    {"Concat", "num_args=2 dim=1", kTwoImages, kImages},
    {"stack", "num_args=2 axis=1", kTwoImages, kImages},
    {"tile", "reps=(2,2)", kMatrix, kRows},
    {"repeat", "repeats=2 axis=1", kMatrix, kRows},
    {"Pad/constant", "mode=constant pad_width=(0,0,0,0,1,1,1,1)", kImage, kImages},
    {"Pad/reflect", "mode=reflect pad_width=(0,0,0,0,1,1,1,1)", kImage, kImages},
    {"reverse", "axis=1", kMatrix, kRows},
    {"depth_to_space", "block_size=2", kImage, kImages},
    {"Embedding", "input_dim={1} output_dim={2}", kVector, kWords, "<{1} -1..1"},
    {"take", "axis=0", "{1},{2} {0}", kWords, "-1..1 <{1}"},
    {"pick", "axis=1", "{0},{1} {0}", kRows, "-1..1 <{1}"},
    {"one_hot", "depth={1}", kVector, kRows, "<{1}"},
    {"gather_nd", "", "{0},{0},{1} 2,{2}", kGrids, "-1..1 <{0}"},
    {"topk", "k=5 ret_typ=both", kMatrix, kSorted},
    {"sort", "", kMatrix, kSorted},
    {"argsort", "", kMatrix, kSorted},
    {"Pooling/max", "pool_type=max kernel=(3,3) stride=(2,2) pad=(1,1)", kImage, kImages},
    {"Pooling/avg", "pool_type=avg kernel=(2,2) stride=(2,2)", kImage, kImages},
    {"Pooling/global", "pool_type=avg global_pool=1", kImage, kImages},
    {"UpSampling/nearest", "scale=2 sample_type=nearest num_args=1", kImage, kResized},
    {"BilinearResize2D/up", "height={3} width={3}", kImage, kResized},
    {"BilinearResize2D/down", "height={2} width={2}", "{0},{1},{3},{3}", kResized},
    {"AdaptiveAvgPooling2D", "output_size=(7,7)", kImage, kImages},
    {"FullyConnected", "num_hidden={2}", kMatrix, kDense},
    {"dot", "", "{0},{1} {1},{2}", kDense},
    {"batch_dot/nn", "", kMatrices, kBatches},
    {"batch_dot/nt", "transpose_b=1", kMatrices, kBatches},
    {"batch_dot/tn", "transpose_a=1", kMatrices, kBatches},
    {"batch_dot/tt", "transpose_a=1 transpose_b=1", kMatrices, kBatches},
    {"scaled_dot_product_attention", "", kQueriesKeysValues, kTokens},
    {"scaled_dot_product_attention/causal", "is_causal=1", kQueriesKeysValues, kTokens},
    {"RNN/lstm", "mode=lstm state_size={2} num_layers={3}", "{0},{1},{2}", kSequences,
     "-1..1 -0.1..0.1"},
    {"RNN/gru", "mode=gru state_size={2} num_layers={3}", "{0},{1},{2}", kSequences,
     "-1..1 -0.1..0.1"},
    {"Convolution/3x3", "kernel=(3,3) pad=(1,1) num_filter={1}", kImage, kFeatures},
    {"Convolution/1x1", "kernel=(1,1) num_filter={1}", kImage, kFeatures},
    {"Convolution/depthwise", "kernel=(3,3) pad=(1,1) num_filter={1} num_group={1}", kImage,
     kFeatures},
    // Learning rate, weight decay and factors are small, so that long runs stay finite.
    {"sgd_mom_update", "momentum=0.9", kVectors, kFlat, "-1..1 -1..1 0.001..0.002"},
    {"adam_update", "", kVectors, kFlat, "-1..1 -1..1 0.001..0.002"},
};

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

Values ParseValues(const std::string& text) {
  if (text.front() == '<') return {0, std::stod(text.substr(1)), true};
  const size_t dots = text.find("..");
  return {std::stod(text.substr(0, dots)), std::stod(text.substr(dots + 2)), false};
}

OpCase CaseOf(const Row& row, size_t size) {
  const int64_t(&n)[4] = row.sizes.numbers[size];
  const auto words = [&n](const char* text) {
    return Words(format(fmt::runtime(text), n[0], n[1], n[2], n[3]));
  };
  OpCase c;
  c.name = row.name;
  c.size = kSizeNames[size];
  c.op = c.name.substr(0, c.name.find('/'));
  for (const std::string& word : words(row.kwargs)) {
    const size_t equals = word.find('=');
    c.kwargs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  for (const std::string& word : words(row.shapes)) c.shapes.push_back(TShape::Parse(word));
  for (const std::string& word : words(row.values)) c.values.push_back(ParseValues(word));
  return c;
}

}  // namespace

bool IsSize(const std::string& name) {
  return std::find(std::begin(kSizeNames), std::end(kSizeNames), name) != std::end(kSizeNames);
}

std::vector<OpCase> OpCases() {
  std::vector<OpCase> cases;
  for (const Row& row : kTable) {
    for (size_t size = 0; size < std::size(kSizeNames); ++size) cases.push_back(CaseOf(row, size));
  }
  return cases;
}

}  // namespace mxtrain::bench
