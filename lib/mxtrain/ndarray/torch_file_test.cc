// SPDX-License-Identifier: Apache-2.0
// Which tensors a file of PyTorch holds.
#include "mxtrain/ndarray/torch_file.h"

#include <doctest/doctest.h>

#include <utility>

#include "tests/support/torch_bytes.h"

namespace mxtrain::test {
namespace {

TEST_CASE_FIXTURE(TorchFixture, "torch files: every element type, in both forms") {
  struct Case {
    const char* storage;
    std::string bytes;
    int64_t size;
    DType type;
    std::vector<float> values;
  };
  const std::vector<Case> cases = {
      {"FloatStorage", Bytes<float>({1.5f, -2}), 4, DType::kFloat32, {1.5f, -2}},
      {"DoubleStorage", Bytes<double>({0.25, 1e10}), 8, DType::kFloat64, {0.25f, 1e10f}},
      {"HalfStorage", Bytes<uint16_t>({0x3800, 0xc000}), 2, DType::kFloat16, {0.5f, -2}},
      {"BFloat16Storage", Bytes<uint16_t>({0x3f00, 0xc000}), 2, DType::kBfloat16, {0.5f, -2}},
      {"LongStorage", Bytes<int64_t>({7, -1}), 8, DType::kInt64, {7, -1}},
      {"IntStorage", Bytes<int32_t>({7, -1}), 4, DType::kInt32, {7, -1}},
      {"ShortStorage", Bytes<int16_t>({-300, 2}), 2, DType::kInt32, {-300, 2}},
      {"CharStorage", Bytes<int8_t>({-128, 3}), 1, DType::kInt32, {-128, 3}},
      {"ByteStorage", Bytes<uint8_t>({200, 1}), 1, DType::kUint8, {200, 1}},
      {"BoolStorage", Bytes<uint8_t>({0, 1}), 1, DType::kUint8, {0, 1}}};
  std::vector<std::pair<std::string, std::string>> tensors;
  Storages data;
  std::vector<int64_t> sizes;
  for (const Case& c : cases) {
    tensors.emplace_back(c.storage, Rebuild(Storage(c.storage, c.storage, 2), 0, {2}, {1}));
    data.emplace_back(c.storage, c.bytes);
    sizes.push_back(c.size);
  }
  const std::string zip = ZipFile(Dict(tensors), data),
                    stream = StreamFile(Dict(tensors), data, sizes);
  for (const std::string& file : {zip, stream}) {
    CHECK(IsTorchFile(file.substr(0, 512)));
    const auto arrays = Read(file);
    REQUIRE(arrays.size() == cases.size());
    for (const Case& c : cases) {
      CAPTURE(c.storage);
      CHECK(arrays.at(c.storage).dtype() == c.type);
      CHECK(arrays.at(c.storage).ToVector() == c.values);
    }
  }
  // The beginning of safetensors with a header of 640 bytes is that of a pickle too.
  CHECK_FALSE(IsTorchFile(std::string("\x80\x02\0\0\0\0\0\0{", 9)));
}

TEST_CASE_FIXTURE(TorchFixture, "torch files: strides become contiguous, storages are shared") {
  const std::string six = Storage("FloatStorage", "0", 6);
  const std::string object = Dict({{"whole", Rebuild(six, 0, {2, 3}, {3, 1})},
                                   {"transposed", Rebuild(six, 0, {3, 2}, {1, 3})},
                                   {"column", Rebuild(six, 1, {2}, {3})},
                                   {"repeated", Rebuild(six, 5, {2, 2}, {0, 0})},
                                   {"one", Rebuild(six, 4, {}, {})},
                                   {"unit", Rebuild(six, 2, {2, 1}, {3, INT64_MAX})},
                                   {"none", Rebuild(six, 6, {0, 3}, {3, 1})}});
  const Storages data = {{"0", Bytes<float>({1, 2, 3, 4, 5, 6})}};
  for (const std::string& file : {ZipFile(object, data), StreamFile(object, data, {4})}) {
    const auto arrays = Read(file);
    CHECK(arrays.at("whole").ToVector() == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(arrays.at("transposed").ToVector() == std::vector<float>{1, 4, 2, 5, 3, 6});
    CHECK(arrays.at("transposed").shape() == TShape{3, 2});
    CHECK(arrays.at("column").ToVector() == std::vector<float>{2, 5});
    CHECK(arrays.at("repeated").ToVector() == std::vector<float>{6, 6, 6, 6});
    CHECK(arrays.at("one").shape().ndim() == 0);
    CHECK(arrays.at("one").ToVector() == std::vector<float>{5});
    CHECK(arrays.at("unit").ToVector() == std::vector<float>{3, 6});
    CHECK(arrays.at("none").shape() == TShape{0, 3});
  }
  const std::string narrow = Storage("ShortStorage", "0", 6);
  CHECK(Read(ZipFile(Dict({{"w", Rebuild(narrow, 0, {3, 2}, {1, 3})}}),
                     {{"0", Bytes<int16_t>({1, 2, 3, 4, 5, -6})}}))
            .at("w")
            .ToVector() == std::vector<float>{1, 4, 2, 5, 3, -6});
}

TEST_CASE_FIXTURE(TorchFixture, "torch files: parameters, and what older versions wrote") {
  const std::string tensor = Rebuild(kFour, 0, {4}, {1});
  const std::string hooks = Global("collections", "OrderedDict") + ")R";
  const std::string parameter = Global("torch.nn.parameter", "Parameter");
  const std::string old_tensor = Global("torch._utils", "_rebuild_tensor") +
                                 Tuple({kFour, Int(1), Ints({2}), Ints({1})}) + "R";
  // A part of a storage: two elements from the second.
  const std::string part =
      Rebuild(Storage("FloatStorage", "0", 4, Tuple({Text("view"), Int(1), Int(2)})), 0, {2}, {1});
  // OrderedDict([[name, tensor]]) with texts of Python 2.
  const auto pair = [](const std::string& name, const std::string& value) {
    return "](" + ShortText(name) + value + "e";
  };
  const std::string object =
      Global("collections", "OrderedDict") + "](" +
      pair("rebuilt",
           Global("torch._utils", "_rebuild_parameter") + Tuple({tensor, "\x88", hooks}) + "R") +
      pair("called", parameter + Tuple({tensor, "\x88"}) + "R") +
      pair("made", parameter + Tuple({tensor}) + "\x81" + Tuple({"\x88", kFalse, hooks}) + "b") +
      pair("stated", parameter + ")\x81" + Tuple({tensor, kNone, hooks, "\x88", kFalse}) + "b") +
      pair("old", old_tensor) + pair("part", part) + "e\x85R" +
      // attributes of the dict
      "}(" + Text("_metadata") + hooks + "ub";
  const Storages data = {{"0", kFourFloats}};
  for (const std::string& file : {ZipFile(object, data), StreamFile(object, data, {4})}) {
    const auto arrays = Read(file);
    REQUIRE(arrays.size() == 6);
    for (const char* name : {"rebuilt", "called", "made", "stated"})
      CHECK(arrays.at(name).ToVector() == std::vector<float>{1, 2, 3, 4});
    CHECK(arrays.at("old").ToVector() == std::vector<float>{2, 3});
    CHECK(arrays.at("part").ToVector() == std::vector<float>{2, 3});
  }
}

TEST_CASE_FIXTURE(TorchFixture, "torch files: the dict of tensors in a checkpoint") {
  const auto tensor = [](int64_t at) { return Rebuild(kFour, at, {1}, {1}); };
  const auto first = [&](const std::string& object) {
    const auto arrays = Read(ZipFile(object, {{"0", kFourFloats}}));
    REQUIRE(arrays.size() == 1);
    CHECK(arrays.begin()->first == "w");
    return arrays.begin()->second.ToVector()[0];
  };
  const auto dict = [&](int64_t at) { return Dict({{"w", tensor(at)}}); };
  // Values of other kinds are skipped, in whatever order; the memo serves values again.
  CHECK(first(Dict({{"epoch", Int(3)},
                    {"loss", "G" + std::string(8, '\0')},
                    {"large", std::string("\x8a\x09\1\1\1\1\1\1\1\1\1", 11)},
                    {"best", "\x88"},
                    {"lists", "]" + tensor(0) + "a"},
                    {"w", tensor(1)}})) == 2);
  const std::string place = Bytes<uint32_t>({1 << 20});
  CHECK(first("}(" + Int(5) + "](" + Text("w") + "q\x01" + tensor(1) + "r" + place + "eh\x01j" +
              place + "u") == 2);
  // Known keys before the outer dict, in their order; a dict without tensors does not count.
  CHECK(first(Dict({{"w", tensor(0)}, {"model", dict(1)}})) == 2);
  CHECK(first(Dict({{"ema", dict(3)}, {"model", dict(1)}, {"state_dict", dict(2)}})) == 3);
  CHECK(first(Dict({{"w", tensor(0)}, {"model", Dict({{"name", Text("x")}})}})) == 1);
  CHECK(first(Dict({{"model", Dict({{"state_dict", dict(3)}})}})) == 4);
  CHECK(first(Dict({{"model", Text("resnet")}, {"net", dict(0)}})) == 1);
}

TEST_CASE_FIXTURE(TorchFixture,
                  "torch files: which of several state dicts, and what others there are") {
  const auto tensor = [](int64_t at) { return Rebuild(kFour, at, {1}, {1}); };
  const auto dict = [&](int64_t at, const std::string& prefix = "") {
    return Dict({{prefix + "w", tensor(at)}, {prefix + "b", tensor(at)}});
  };
  const Storages data = {{"0", kFourFloats}};
  const auto value = [&](const std::string& file, const std::string& state) {
    const auto arrays = Read(file, state);
    return arrays.begin()->second.ToVector()[0];
  };
  const auto taken = [&](const std::string& file, const std::string& state = "") {
    TorchStates states;
    Read(file, state, &states);
    std::string text = states.taken;
    for (const std::string& other : states.others) text += " " + other;
    return text;
  };
  const std::string timm = ZipFile(Dict({{"state_dict", dict(0)},
                                         {"state_dict_ema", dict(1)},
                                         {"metric", Dict({{"best", tensor(3)}})}}),
                                   data);
  CHECK(taken(timm) == "state_dict state_dict_ema");
  CHECK(value(timm, "") == 1);
  CHECK(value(timm, "state_dict_ema") == 2);
  CHECK(taken(timm, "state_dict_ema") == "state_dict_ema state_dict");
  // torchvision's averages count their updates, and are of a net in a wrapper.
  const std::string averages =
      Dict({{"n_averaged", tensor(3)}, {"module.w", tensor(2)}, {"module.b", tensor(2)}});
  const std::string torchvision =
      ZipFile(Dict({{"model", dict(0)}, {"model_ema", averages}}), data);
  CHECK(taken(torchvision) == "model model_ema");
  CHECK(Read(torchvision, "model_ema").size() == 3);
  // Of other nets
  const std::string gan = ZipFile(
      Dict({{"G", Dict({{"ema", dict(0)}, {"raw", dict(1)}})}, {"D", Dict({{"conv", tensor(2)}})}}),
      data);
  Refuses(gan, "it holds tensors under 'G.ema', 'G.raw', 'D', and under none of state_dict");
  CHECK(value(gan, "G.raw") == 2);
  CHECK(taken(gan, "G") == "G.ema G.raw");
  CHECK(taken(gan, "D") == "D");
  CHECK(ErrorOf(gan, "E") ==
        "net.pth: it holds no tensors by name under 'E'; it does under: 'G.ema', 'G.raw', 'D'");
  // The only one is read, whatever it is called.
  CHECK(taken(ZipFile(Dict({{"weights", dict(1)}, {"epoch", Int(1)}}), data)) == "weights");
  CHECK(taken(ZipFile(dict(0), data)) == "");
}

TEST_CASE_FIXTURE(TorchFixture, "torch files: names are UTF-8, with a NUL or without") {
  const std::string tensor = Rebuild(kFour, 0, {4}, {1}), nul("a\0b", 3);
  CHECK(Read(ZipFile(Dict({{nul, tensor}}), {{"0", kFourFloats}})).contains(nul));
  Refused(Dict({{"caf\xe9", tensor}}), "the name 'caf\\xe9' is not UTF-8");
  // Paths that Python could not decode are texts with lone surrogates.
  CHECK(
      Read(ZipFile(Dict({{"w", tensor}, {"path", Text("caf\xed\xb3\xa9")}}), {{"0", kFourFloats}}))
          .contains("w"));
  Refused("}" + ShortText("caf\xe9") + tensor + "s", "the name 'caf\\xe9' is not UTF-8");
}

}  // namespace
}  // namespace mxtrain::test
