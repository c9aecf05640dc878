// SPDX-License-Identifier: Apache-2.0
// Pickles: what training scripts put beside the tensors.
#include <doctest/doctest.h>

#include <utility>

#include "tests/support/torch_bytes.h"

namespace mxtrain::test {
namespace {

std::string New(const std::string& callee, const std::string& state) {
  return callee + ")\x81" + state + "b";
}
std::string Called(const std::string& callee, const std::vector<std::string>& arguments) {
  return callee + Tuple(arguments) + "R";
}
// bytes in protocol 2
std::string Encoded(const std::string& bytes) {
  return Called(Global("_codecs", "encode"), {Text(bytes), Text("latin1")});
}
// A NumPy number: scalar(dtype, bytes).
std::string NumpyScalar() {
  const std::string type =
      Called(Global("numpy", "dtype"), {Text("f8"), kFalse, "\x88"}) +
      Tuple({Int(3), Text("<"), kNone, kNone, kNone, Int(-1), Int(-1), Int(0)}) + "b";
  return Called(Global("numpy.core.multiarray", "scalar"), {type, Encoded("ffffff")});
}

TEST_CASE_FIXTURE(TorchFixture, "torch files: objects beside the tensors are skipped") {
  const std::string tensor = Rebuild(kFour, 0, {4}, {1});
  const std::string state = Dict({{"w", tensor}});
  const std::string any = Global("typing", "Any");
  const std::vector<std::pair<std::string, std::string>> objects = {
      {"Namespace", New(Global("argparse", "Namespace"), Dict({{"lr", Int(1)}}))},
      {"NumPy number", NumpyScalar()},
      {"datetime", Called(Global("datetime", "datetime"), {Encoded("\x07\x01")})},
      {"path", Called(Global("pathlib", "PosixPath"), {Text("/"), Text("tmp")})},
      {"enum", Called(Global("my.modes", "Mode"), {Int(2)})},
      {"partial", Called(Global("functools", "partial"), {Global("torch.nn", "GELU")}) +
                      Tuple({Global("torch.nn", "GELU"), ")", "}", kNone}) + "b"},
      {"nested class",
       Called(Called(Global("__builtin__", "getattr"), {Global("my", "Outer"), Text("Inner")}),
              {})},
      {"set", Called(Global("__builtin__", "set"), {"](" + Int(1) + Int(2) + "e"})},
      {"defaultdict",
       Called(Global("collections", "defaultdict"), {Global("__builtin__", "list")}) + "(" +
           Text("a") + "]u"},
      {"subclass of list", Global("my", "List") + ")\x81(" + Int(1) + Int(2) + "e"},
      {"deque", Called(Global("collections", "deque"), {")"}) + "(" + Int(1) + "e"},
      {"config",
       New(Global("omegaconf.dictconfig", "DictConfig"),
           Dict({{"_content", Dict({{"lr", New(Global("omegaconf.nodes", "AnyNode"),
                                               Dict({{"_val", Int(1)}, {"type", any}}))}})},
                 {"_parent", kNone}}))},
      {"system", Called(Global("posix", "system"), {Text("touch ran")})},
      {"module", New(Global("torch.nn.modules.linear", "Linear"), Dict({{"training", kFalse}}))},
      {"dtype", Global("torch", "float32")},
      {"size", Called(Global("torch", "Size"), {Ints({1, 2})})},
      {"long", std::string("\x8b\x09\0\0\0\1\1\1\1\1\1\1\1\1", 14)},
      {"popped", Int(1) + Int(2) + "0(" + Int(3) + "1"},
      {"array", Called(Global("numpy.core.multiarray", "_reconstruct"),
                       {Global("numpy", "ndarray"), Ints({0}), Encoded("b")}) +
                    Tuple({Int(1), Ints({1}), any, kFalse, Encoded("bytes")}) + "b"}};
  const Storages data = {{"0", kFourFloats}};
  for (const auto& [name, object] : objects) {
    CAPTURE(name);
    for (const std::string& file :
         {ZipFile(Dict({{"args", object}, {"model", state}}), data),
          StreamFile(Dict({{"model", state}, {"args", object}}), data, {4}),
          ZipFile(Dict({{"w", tensor}, {"args", object}}), data)}) {
      const std::string error = ErrorOf(file);
      CHECK(error == "");
      if (!error.empty()) continue;
      const auto arrays = Read(file);
      REQUIRE(arrays.size() == 1);
      CHECK(arrays.at("w").ToVector() == std::vector<float>{1, 2, 3, 4});
    }
  }
}

TEST_CASE_FIXTURE(TorchFixture, "torch files: dicts of other classes, tensors with attributes") {
  const Storages data = {{"0", kFourFloats}};
  const std::string tensor = Rebuild(kFour, 0, {4}, {1});
  const std::string items = "(" + Text("w") + tensor + "u";
  for (const std::string& made :
       {Global("my", "State") + ")\x81", Called(Global("my", "State"), {}),
        Called(Global("collections", "defaultdict"), {kNone})}) {
    CHECK(Read(ZipFile(made + items, data)).contains("w"));
    CHECK(Read(ZipFile(Dict({{"state_dict", made + items}}), data)).contains("w"));
  }
  const std::string v2 = Global("torch._utils", "_rebuild_tensor_v2");
  const std::string arguments = Tuple({kFour, Int(0), Ints({4}), Ints({1}), kFalse, "}"});
  const std::string stated =
      Called(Global("torch._utils", "_rebuild_parameter_with_state"), {tensor, "\x88", "}", "}"});
  const std::string of_type = Called(Global("torch._tensor", "_rebuild_from_type_v2"),
                                     {v2, Global("my", "Tensor"), arguments, "}"});
  const auto arrays = Read(ZipFile(Dict({{"stated", stated}, {"of_type", of_type}}), data));
  for (const char* name : {"stated", "of_type"})
    CHECK(arrays.at(name).ToVector() == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE_FIXTURE(TorchFixture,
                  "torch files: tensors that are not supported count where they are read") {
  const std::string state = Dict({{"w", Rebuild(kFour, 0, {4}, {1})}});
  const std::string complex = Rebuild(Storage("ComplexFloatStorage", "1", 2), 0, {2}, {1});
  const std::string sparse = Called(Global("torch._utils", "_rebuild_sparse_tensor"), {kNone, ")"});
  const std::string untyped =
      Called(Global("torch._utils", "_rebuild_tensor_v3"),
             {Tuple({Text("storage"), Global("torch.storage", "UntypedStorage"), Text("1"),
                     Text("cpu"), Int(16)}) +
              "Q"});
  const Storages data = {{"0", kFourFloats}, {"1", std::string(16, '\0')}};
  const std::vector<int64_t> sizes = {4, 8};
  CHECK(Read(ZipFile(Dict({{"model", state}, {"x", complex}}), data)).contains("w"));
  CHECK(Read(StreamFile(Dict({{"model", state}, {"x", complex}}), data, sizes)).contains("w"));
  CHECK(Read(ZipFile(Dict({{"model", state}, {"x", sparse}}), data)).contains("w"));
  CHECK(Read(ZipFile(Dict({{"model", state}, {"x", untyped}}), data)).contains("w"));
  Refuses(ZipFile(Dict({{"w", complex}}), data), "elements of 'torch.ComplexFloatStorage'");
  Refuses(ZipFile(Dict({{"w", sparse}}), data), "made by 'torch._utils._rebuild_sparse_tensor'");
  Refuses(ZipFile(Dict({{"w", untyped}}), data), "made by 'torch._utils._rebuild_tensor_v3'");
}

TEST_CASE_FIXTURE(TorchFixture, "torch files: pickles of protocols 3 to 5") {
  const auto frame = [](const std::string& text) {  // memoized, as Python's pickler does
    return "\x8c" + Bytes({static_cast<uint8_t>(text.size())}) + text + "\x94";
  };
  const std::string v2 = "\x8c\x0ctorch._utils\x94" + frame("_rebuild_tensor_v2") + "\x93\x94";
  const std::string storage = "(" + frame("storage") + frame("torch") + frame("FloatStorage") +
                              "\x93\x94" + frame("0") + frame("cpu") + Int(4) + "tQ";
  const std::string tensor = v2 + "(" + storage + Int(1) + Ints({2}) + Ints({1}) + kFalse + "}tR";
  const std::string others = frame("bytes") + std::string("C\x02\0\1B\1\0\0\0x0", 11) +
                             frame("set") + "\x8f(" + Int(1) + "\x90" + frame("frozen") + "(" +
                             Int(2) + "\x91" + frame("keywords") + frame("my") + frame("New") +
                             "\x93)}\x92" + frame("long") + "\x8d" + Bytes<uint64_t>({1}) + "x" +
                             frame("blob") + "\x8e" + Bytes<uint64_t>({1}) + "x" + frame("array") +
                             "\x96" + Bytes<uint64_t>({1}) + "x";
  const std::string object = "}(" + frame("w") + tensor + others + "u";
  for (const char protocol : {'\3', '\4', '\5'}) {
    const std::string pickle = "\x80" + std::string(1, protocol) + "\x95" +
                               Bytes<uint64_t>({object.size()}) + object + ".";
    const auto arrays = Read(ZipOf({{"n/data.pkl", pickle}, {"n/data/0", kFourFloats}}));
    REQUIRE(arrays.size() == 1);
    CHECK(arrays.at("w").ToVector() == std::vector<float>{2, 3});
  }
}

}  // namespace
}  // namespace mxtrain::test
