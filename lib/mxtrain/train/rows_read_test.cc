// SPDX-License-Identifier: Apache-2.0
// Training that updates only the rows of embeddings that batches read.
#include "mxtrain/train/internal/rows_read.h"

#include "mxtrain/base/error.h"
#include "tests/support/error_message.h"
#include "tests/support/layers.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

constexpr int64_t kWords = 40, kPadding = 39, kNever = 20;  // rows from kNever on are not read

// Three classes of words, each example a few of its own.
void WriteWords(const TempDir& folder) {
  std::string text = "class";
  for (int i = 0; i < kSide * kSide; ++i) text += format(",w{}", i);
  text += "\n";
  for (int n = 0; n < kExamples; ++n) {
    text += std::to_string(n % 3);
    for (int i = 0; i < kSide * kSide; ++i)
      text += format(",{}", i < 5 + n % 7 ? (n % 3) * 6 + (n + i * i) % 8 : kPadding);
    text += "\n";
  }
  folder.Write("table.csv", text);
}

Symbol MeanOfWords(bool sparse) {
  Symbol net = Layer("Embedding", "bag", {Symbol::Variable("data")},
                     {{"input_dim", std::to_string(kWords)},
                      {"output_dim", "9"},
                      {"sparse_grad", sparse ? "True" : "False"}});
  net = Layer("mean", "mean", {net}, {{"axis", "(1, 2, 3)"}});
  net = Layer("FullyConnected", "fc", {net}, {{"num_hidden", "3"}});
  return Layer("SoftmaxOutput", "softmax", {net});
}

RunSpec SpecOf(bool sparse, const NamedSpec& optimizer) {
  RunSpec spec;
  spec.symbol = MeanOfWords(sparse);
  spec.optimizer = optimizer;
  return spec;
}

TEST_CASE("without momentum or decay, rows alone end in the weights of the whole array") {
  const TempDir data;
  WriteWords(data);
  const NamedSpec sgd{"sgd", {{"lr", "0.2"}}};
  const Outcome all = RunWhole(data, SpecOf(false, sgd)), rows = RunWhole(data, SpecOf(true, sgd));
  CHECK(LargestDifference(rows.bits, all.bits) < 1e-5);
  RunSpec clipped = SpecOf(true, sgd), whole = SpecOf(false, sgd);
  clipped.clip_norm = whole.clip_norm = 0.01;
  CHECK(LargestDifference(RunWhole(data, clipped).bits, RunWhole(data, whole).bits) < 1e-5);
}

TEST_CASE("rows that are not read keep their bits under every optimizer of rows") {
  const TempDir data;
  WriteWords(data);
  for (const char* name : {"sgd", "nag", "adam", "adamw", "adagrad", "rmsprop"}) {
    CAPTURE(name);
    Kwargs kwargs = {{"lr", "0.01"}, {"weight_decay", "0.1"}};
    if (std::string_view(name) == "sgd") kwargs.emplace_back("momentum", "0.9");
    Process process(data, SpecOf(true, {name, kwargs}));
    const NDArray weight = process.trainer->executor().arg("bag_weight");
    const std::vector<float> before = weight.ToVector();
    Log log;
    process.trainer->Run(log);
    const std::vector<float> after = weight.ToVector();
    int64_t changed = 0;
    for (int64_t row = 0; row < kWords; ++row) {
      const bool same = std::equal(before.begin() + row * 9, before.begin() + (row + 1) * 9,
                                   after.begin() + row * 9);
      changed += !same;
      if (row >= kNever && row != kPadding) CHECK(same);
    }
    CHECK(changed > 10);
    const std::vector<float> grad = process.trainer->executor().grad("bag_weight").ToVector();
    CHECK(std::ranges::count(grad, 0.0F) == std::ssize(grad));
  }
}

TEST_CASE("what does not go with rows alone is refused by name") {
  const TempDir data;
  WriteWords(data);
  const auto error = [&](RunSpec spec) { return MessageOf([&] { Process(data, spec); }); };
  RunSpec spec = SpecOf(true, {"sgd", {{"lr", "0.1"}}});
  spec.workers = 2;
  CHECK(error(spec).find("several workers add their gradients up") != std::string::npos);
  spec.workers = 1;
  spec.grad_accum = 2;
  CHECK(error(spec).find("a step of 2 batches") != std::string::npos);
  spec.grad_accum = 1;
  spec.amp = DType::kBfloat16;
  CHECK(error(spec).find("mixed precision") != std::string::npos);
  spec.amp.reset();
  Symbol moved = Layer("identity", "moved", {Symbol::Variable("data")});
  Symbol net = Layer("Embedding", "bag", {moved},
                     {{"input_dim", "40"}, {"output_dim", "9"}, {"sparse_grad", "True"}});
  net = Layer("FullyConnected", "fc", {net}, {{"num_hidden", "3"}});
  spec.symbol = Layer("SoftmaxOutput", "softmax", {net});
  CHECK(error(spec).find("Embedding 'bag': sparse_grad = True: its data is not an input of the "
                         "net") != std::string::npos);
}

}  // namespace
}  // namespace mxtrain::test
