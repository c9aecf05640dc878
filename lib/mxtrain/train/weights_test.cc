// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/weights.h"

#include <doctest/doctest.h>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/ndarray/safetensors.h"
#include "mxtrain/train/checkpoint.h"
#include "tests/support/temp_dir.h"

namespace mxtrain {
namespace {

using Rules = std::vector<NameMap::Rule>;

struct WeightFiles {
  Runtime runtime{RuntimeOptions(), BuiltinOperators()};
  test::TempDir folder;

  NDArray Array(const TShape& shape, float first) {
    std::vector<float> values(static_cast<size_t>(shape.Size()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
    return NDArray::FromVector(runtime, shape, values);
  }
  ErrorKind KindOf(const std::string& file, const NameMap& map = {}) {
    try {
      LoadWeights(runtime, file, map);
    } catch (const Error& e) {
      return e.kind();
    }
    return ErrorKind::kBug;
  }
};

TEST_CASE("a name map tells how groups are written to who writes them as other programs do") {
  CHECK_THROWS_WITH_AS(
      NameMap(Rules{{"layer(\\d)", R"(block\1)"}}),
      doctest::Contains(
          R"(the replacement 'block\1': write groups of the pattern as $1, $2, not as \1)"),
      Error);
  CHECK_THROWS_WITH_AS(NameMap(Rules{{"layer(\\d)", R"(block\g<1>)"}}),
                       doctest::Contains(R"(not as \g<1>)"), Error);
  CHECK(NameMap(Rules{{"layer(\\d)", "block$1"}}).Apply("layer7") == "block7");
}

TEST_CASE("names: rules in order, each on the result of the previous one") {
  const NameMap map(Rules{{R"(^layer(\d)\.(\d+)\.)", "stage$1_unit$2_"},
                          {R"(_bn1\.weight$)", "_a_bn_gamma"},
                          {R"(\.num_batches_tracked$)", std::nullopt}});
  CHECK(map.Apply("layer1.12.bn1.weight") == "stage1_unit12_a_bn_gamma");
  CHECK(map.Apply("layer1.0.bn1.num_batches_tracked") == std::nullopt);
  CHECK(map.Apply("fc.weight") == "fc.weight");
  CHECK(NameMap().Apply("fc.weight") == "fc.weight");
  CHECK(NameMap(Rules{{"a", "b"}}).Apply("banana") == "bbnana");  // the first place alone
  CHECK_THROWS_WITH_AS(NameMap(Rules{{"a", "$1"}}),
                       doctest::Contains("names $1, but the pattern 'a' has 0 groups"), Error);
  CHECK_THROWS_WITH_AS(NameMap(Rules{{"(", ""}}),
                       doctest::Contains("'(' is not a valid regular expression"), Error);
}

TEST_CASE_FIXTURE(WeightFiles, "weights of files of every format") {
  const NDArray weight = Array({2, 3}, 1), mean = Array({2}, 7);
  SaveArrays(folder.path("net.params"), {{"arg:fc_weight", "aux:bn_moving_mean"}, {weight, mean}});
  SaveArrays(folder.path("net-0007.params"),
             {{"arg:fc_weight", "aux:bn_moving_mean"}, {weight, mean}});
  WriteFileAtomically(folder.path("net.safetensors"),
                      SerializeSafetensors({{"fc_weight", weight}, {"bn_moving_mean", mean}}));
  Checkpoint checkpoint;
  checkpoint.model.symbol_json = "{}";
  checkpoint.args["fc_weight"] = weight;
  checkpoint.auxs["bn_moving_mean"] = mean;
  SaveCheckpoint(folder.path("net"), checkpoint);
  for (const char* file : {"net.params", "net@7", "net.safetensors", "net"}) {
    CAPTURE(file);
    if (std::string(file) == "net@7") folder.Write("net-symbol.json", "{}");
    const auto arrays = LoadWeights(runtime, folder.path(file));
    REQUIRE(arrays.size() == 2);
    CHECK(arrays.at("fc_weight").ToVector() == weight.ToVector());
    CHECK(arrays.at("bn_moving_mean").ToVector() == mean.ToVector());
  }
  CHECK(LoadWeights(runtime, folder.path("net.params"),
                    NameMap(Rules{{"^fc_", "head_"}, {"^bn", std::nullopt}}))
            .begin()
            ->first == "head_weight");
  CHECK(KindOf(folder.path("net.params"), NameMap(Rules{{".+", "same"}})) == ErrorKind::kData);
  CHECK(KindOf(folder.path("absent.safetensors")) == ErrorKind::kFileSystem);
}

TEST_CASE_FIXTURE(WeightFiles, "a map transposes matrices, and joins equal arrays") {
  const NDArray matrix = NDArray::FromVector(runtime, {2, 3}, {1, 2, 3, 4, 5, 6});
  const std::map<std::string, NDArray> arrays = {
      {"c_fc.weight", matrix}, {"lm_head", matrix}, {"wte", matrix}};
  const NameMap map(Rules{{"^(wte|lm_head)$", "token"}, {R"(c_fc\.weight)", "dense", true}});
  const auto renamed = Renamed(arrays, map, "net");
  REQUIRE(renamed.size() == 2);
  CHECK(renamed.at("token").ToVector() == matrix.ToVector());
  CHECK(renamed.at("dense").shape() == TShape{3, 2});
  CHECK(renamed.at("dense").ToVector() == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(WrapperPrefix({{"module.wte", matrix}, {"module.lm_head", matrix}}, map, {"token"}) ==
        "module.");
  CHECK_THROWS_WITH_AS(
      Renamed({{"wte", matrix}, {"lm_head", Array({2, 3}, 9)}}, map, "net"),
      "net: 'lm_head' and 'wte' both become 'token', and differ; correct the name map", Error);
  CHECK_THROWS_WITH_AS(
      Renamed({{"c_fc.weight", Array({2}, 9)}}, map, "net"),
      "net: 'c_fc.weight' is [2], but the name map transposes it; it is not a matrix", Error);
}

TEST_CASE_FIXTURE(WeightFiles, "files of PyTorch are recognized by their contents") {
  // {"w": a tensor of 1.5 and -2} in the form that PyTorch wrote before 1.6.
  const auto text = [](const std::string& t) {
    return std::string("U") + static_cast<char>(t.size()) + t;
  };
  const std::string begin("\x80\x02", 2);
  const std::string storage =
      "(" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + "K\2tQ";
  const std::string tensor =
      "ctorch._utils\n_rebuild_tensor\n(" + storage + std::string("K\0K\2\x85K\1\x85tR", 10);
  const std::string bytes = begin + "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." + begin +
                            "M\xe9\x03." + begin + "}." + begin + "}" + text("w") + tensor + "s." +
                            begin + "]" + text("0") + "a." +
                            std::string("\2\0\0\0\0\0\0\0\0\0\xc0\x3f\0\0\0\xc0", 16);
  for (const char* file : {"net.pth", "net.safetensors", "net"}) {
    CAPTURE(file);
    folder.Write(file, bytes);
    const auto arrays = LoadWeights(runtime, folder.path(file));
    REQUIRE(arrays.size() == 1);
    CHECK(arrays.at("w").ToVector() == std::vector<float>{1.5f, -2});
  }
  folder.Write("model.pth", "\x80\x02");
  CHECK(KindOf(folder.path("model.pth")) == ErrorKind::kData);
  CHECK(KindOf(folder.path("absent.pth")) == ErrorKind::kFileSystem);
}

TEST_CASE_FIXTURE(WeightFiles,
                  "weights: an array that cannot be read matters if the net would take it") {
  const std::string header =
      R"({"module.scale":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[4,8]},)"
      R"("module.w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  folder.Write("net.safetensors", length + header + std::string(8, '\0'));
  const std::string file = folder.path("net.safetensors");
  const WeightsFile read = ReadWeights(runtime, file);
  CHECK(read.arrays.size() == 1);
  RequireRead(read.unread, "module.", {}, {"w", "bias"}, file);
  CHECK_THROWS_WITH_AS(RequireRead(read.unread, "module.", {}, {"w", "scale"}, file),
                       format("{}: array 'module.scale': its elements are F8_E4M3, which mxtrain "
                              "does not support; save it as F32",
                              file)
                           .c_str(),
                       Error);
  CHECK_THROWS_AS(LoadWeights(runtime, file), Error);
  CHECK(LoadWeights(runtime, file, NameMap(Rules{{"scale", std::nullopt}})).size() == 1);
}

TEST_CASE_FIXTURE(WeightFiles, "weights: what wrappers put before the names is found and removed") {
  const auto named = [&](const std::vector<std::string>& names) {
    std::map<std::string, NDArray> arrays;
    for (const std::string& name : names) arrays[name] = Array({1}, 0);
    return arrays;
  };
  const std::set<std::string> net = {"conv_weight", "fc_weight", "fc_bias"};
  const NameMap map(Rules{{R"(^(\w+)\.)", "$1_"}});
  const auto prefix = [&](const std::vector<std::string>& names) {
    return WrapperPrefix(named(names), map, net);
  };
  CHECK(prefix({"conv.weight", "fc.weight", "fc.bias"}) == "");
  CHECK(prefix({"module.conv.weight", "module.fc.weight", "module.fc.bias"}) == "module.");
  CHECK(prefix({"_orig_mod.conv.weight", "_orig_mod.fc.weight"}) == "_orig_mod.");
  CHECK(prefix({"module._orig_mod.fc.weight", "module._orig_mod.fc.bias"}) == "module._orig_mod.");
  // Beside it what a LightningModule or averages have of their own.
  CHECK(prefix({"model.conv.weight", "model.fc.weight", "criterion.weight"}) == "model.");
  CHECK(prefix({"n_averaged", "module.fc.weight", "module.fc.bias"}) == "module.");
  CHECK(prefix({"student.fc.bias", "teacher.fc.bias"}) == "student.");
  // None that brings no array to the net, or two to one name.
  CHECK(prefix({"module.dense.weight", "module.dense.bias"}) == "");
  CHECK(prefix({"fc.bias", "module.fc.bias", "module.fc.weight"}) == "");
  // The net's own, and that of a map which removes it.
  CHECK(WrapperPrefix(named({"model.fc", "model.conv"}), NameMap(), {"model.fc", "fc"}) == "");
  const NameMap removes(Rules{{R"(^module\.)", ""}, {R"(^(\w+)\.)", "$1_"}});
  CHECK(WrapperPrefix(named({"module.fc.bias", "module.fc.weight"}), removes, net) == "");

  const auto bare = WithoutPrefix(named({"n_averaged", "module.fc.bias"}), "module.");
  CHECK(bare.size() == 2);
  CHECK(bare.contains("fc.bias"));
  CHECK(bare.contains("n_averaged"));

  folder.Write("net.params", "");
  CHECK_THROWS_WITH_AS(ReadWeights(runtime, folder.path("net.params"), "ema"),
                       doctest::Contains("is not a file of PyTorch, so it has no state dict 'ema'"),
                       Error);
}

TEST_CASE_FIXTURE(WeightFiles, "what fits is loaded, the rest is reported") {
  const std::map<std::string, NDArray> net = {{"conv_weight", Array({2, 1, 1, 1}, 0)},
                                              {"dense_weight", Array({2, 12}, 0)},
                                              {"fc_weight", Array({3, 4}, 0)},
                                              {"fc_bias", Array({3}, 0)}};
  const std::map<std::string, NDArray> file = {
      {"conv_weight", Array({2, 1, 1, 1}, 5)},
      {"dense_weight", Array({2, 3, 2, 2}, 10)},  // a convolution over a whole image
      {"fc_weight", Array({4, 3}, 1)},            // as many numbers in another shape
      {"head_bias", Array({3}, 1)}};
  const WeightsAccount account = TakeWeights(file, net);
  CHECK(account.taken == std::vector<std::string>{"conv_weight", "dense_weight"});
  CHECK(account.unused == std::vector<std::string>{"head_bias"});
  REQUIRE(account.reset.size() == 2);
  CHECK(account.reset[0].name == "fc_bias");
  CHECK_FALSE(account.reset[0].in_file.has_value());
  CHECK(account.reset[1].in_file == TShape{4, 3});
  CHECK(net.at("conv_weight").ToVector() == std::vector<float>{5, 6});
  CHECK(net.at("dense_weight").ToVector()[23] == 33);
  CHECK(net.at("fc_weight").ToVector()[0] == 0);
  CHECK(account.Text() ==
        "2 arrays taken; 1 are re-initialized, their shape differs: fc_weight [3, 4] ([4, 3] in "
        "the file); 1 are re-initialized, not in the file: fc_bias; "
        "1 of the file are unused: head_bias");
}

TEST_CASE_FIXTURE(WeightFiles, "narrow elements become float32") {
  // 1.5 and -2 as bfloat16.
  const std::string header = R"({"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})",
                    data("\xc0\x3f\x00\xc0", 4);
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  folder.Write("net.safetensors", length + header + data);
  const std::map<std::string, NDArray> net = {{"w", Array({2}, 0)}};
  TakeWeights(LoadWeights(runtime, folder.path("net.safetensors")), net);
  CHECK(net.at("w").ToVector() == std::vector<float>{1.5f, -2});
}

}  // namespace
}  // namespace mxtrain
