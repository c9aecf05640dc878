// SPDX-License-Identifier: Apache-2.0
// The files are put together here byte by byte, as pickletools and the zip format describe them.
#include "mxtrain/ndarray/torch_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <utility>

#include "mxtrain/base/error.h"
#include "tests/support/naive_runtime.h"

namespace mxtrain {
namespace {

template <typename T>
std::string Bytes(std::initializer_list<T> values) {
  std::string bytes;
  for (const T& value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

// ---- Pickles

const std::string kNone = "N", kFalse = "\x89", kEmptyDict = "}";

std::string Text(const std::string& text) {
  return "X" + Bytes<uint32_t>({static_cast<uint32_t>(text.size())}) + text;
}
std::string ShortText(const std::string& text) {  // by Python 2
  return "U" + Bytes<uint8_t>({static_cast<uint8_t>(text.size())}) + text;
}
std::string Int(int64_t number) {
  if (number >= 0 && number < 256) return "K" + Bytes({static_cast<uint8_t>(number)});
  return "\x8a\x08" + Bytes({number});
}
std::string Global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
std::string Tuple(const std::vector<std::string>& items) {
  std::string pickle = "(";
  for (const std::string& item : items) pickle += item;
  return pickle + "t";
}
std::string Ints(const std::vector<int64_t>& numbers) {
  std::vector<std::string> items;
  for (int64_t number : numbers) items.push_back(Int(number));
  return Tuple(items);
}
std::string Dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string pickle = "}(";
  for (const auto& [key, value] : items) pickle.append(Text(key)).append(value);
  return pickle + "u";
}
std::string Storage(const std::string& type, const std::string& key, int64_t count,
                    const std::string& part = "") {
  return Tuple({Text("storage"), Global("torch", type), Text(key), Text("cpu"), Int(count), part}) +
         "Q";
}
std::string Rebuild(const std::string& storage, int64_t offset, const std::vector<int64_t>& shape,
                    const std::vector<int64_t>& strides) {
  return Global("torch._utils", "_rebuild_tensor_v2") +
         Tuple({storage, Int(offset), Ints(shape), Ints(strides), kFalse,
                Global("collections", "OrderedDict") + ")R"}) +
         "R";
}
std::string PickleOf(const std::string& value) {
  return "\x80\x02" + value + ".";
}

// ---- The two forms

struct Entry {
  std::string name, bytes;
  uint16_t method = 0, flags = 0;
};

uint32_t CrcOf(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

std::string ZipOf(const std::vector<Entry>& entries, bool wide = false) {
  std::string zip, directory;
  for (const Entry& entry : entries) {
    const auto name_bytes = static_cast<uint16_t>(entry.name.size());
    const auto size = static_cast<uint32_t>(entry.bytes.size());
    const auto begin = static_cast<uint32_t>(zip.size());
    const std::string what =
        Bytes<uint16_t>({entry.flags, entry.method, 0, 0}) + Bytes<uint32_t>({CrcOf(entry.bytes)});
    const std::string padding = "FB" + Bytes<uint16_t>({3}) + "ZZZ";
    for (const std::string& part :
         {std::string("PK\x03\x04"), Bytes<uint16_t>({20}), what, Bytes<uint32_t>({size, size}),
          Bytes<uint16_t>({name_bytes, 7}), entry.name, padding, entry.bytes})
      zip += part;
    const std::string extra =
        wide ? Bytes<uint16_t>({9, 2, 0, 1, 24}) + Bytes<uint64_t>({size, size, begin}) : "";
    for (const std::string& part :
         {std::string("PK\x01\x02"), Bytes<uint16_t>({20, 20}), what,
          wide ? Bytes<uint32_t>({~0u, ~0u}) : Bytes<uint32_t>({size, size}),
          Bytes<uint16_t>({name_bytes, static_cast<uint16_t>(extra.size()), 0, 0, 0}),
          Bytes<uint32_t>({0, wide ? ~0u : begin}), entry.name, extra})
      directory += part;
  }
  const uint64_t begin = zip.size(), bytes = directory.size(), count = entries.size();
  zip += directory;
  if (wide) {
    zip += "PK\x06\x06" + Bytes<uint64_t>({44}) + Bytes<uint16_t>({45, 45}) +
           Bytes<uint32_t>({0, 0}) + Bytes<uint64_t>({count, count, bytes, begin});
    zip += "PK\x06\x07" + Bytes<uint32_t>({0}) + Bytes<uint64_t>({begin + bytes}) +
           Bytes<uint32_t>({1});
    return zip + "PK\x05\x06" + Bytes<uint16_t>({0, 0, 0xffff, 0xffff}) +
           Bytes<uint32_t>({~0u, ~0u}) + Bytes<uint16_t>({0});
  }
  return zip + "PK\x05\x06" +
         Bytes<uint16_t>({0, 0, static_cast<uint16_t>(count), static_cast<uint16_t>(count)}) +
         Bytes<uint32_t>({static_cast<uint32_t>(bytes), static_cast<uint32_t>(begin)}) +
         Bytes<uint16_t>({0});
}

using Data = std::vector<std::pair<std::string, std::string>>;  // key, bytes

std::string ZipFile(const std::string& object, const Data& storages) {
  std::vector<Entry> entries = {{"net/data.pkl", PickleOf(object)}, {"net/byteorder", "little"}};
  for (const auto& [key, bytes] : storages) entries.push_back({"net/data/" + key, bytes});
  entries.push_back({"net/version", "3\n"});
  return ZipOf(entries);
}

const std::string kMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);

// `sizes`: bytes of an element of each storage.
std::string StreamFile(const std::string& object, const Data& storages,
                       const std::vector<int64_t>& sizes) {
  std::string keys = "](", data;
  for (size_t i = 0; i < storages.size(); ++i) {
    keys += Text(storages[i].first);
    data += Bytes({static_cast<int64_t>(storages[i].second.size()) / sizes[i]});
    data += storages[i].second;
  }
  return kMagic + PickleOf("M" + Bytes<uint16_t>({1001})) +
         PickleOf(Dict({{"protocol_version", Int(1001)}, {"little_endian", "\x88"}})) +
         PickleOf(object) + PickleOf(keys + "e") + data;
}

// ---- Reading

struct Fixture {
  Runtime runtime{test::NaiveOptions(), nullptr};

  std::map<std::string, NDArray> Read(const std::string& bytes, const std::string& state = "",
                                      TorchStates* states = nullptr) {
    const NamedArrays arrays = DeserializeTorchFile(runtime, bytes, "net.pth", state, states);
    CHECK(std::is_sorted(arrays.names.begin(), arrays.names.end()));
    std::map<std::string, NDArray> result;
    for (size_t i = 0; i < arrays.names.size(); ++i) result[arrays.names[i]] = arrays.arrays[i];
    return result;
  }
  std::string ErrorOf(const std::string& bytes, const std::string& state = "") {
    try {
      DeserializeTorchFile(runtime, bytes, "net.pth", state);
      return "";
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kData);
      return error.what();
    }
  }
  bool Refuses(const std::string& bytes, const std::string& part) {
    const std::string error = ErrorOf(bytes);
    INFO(error);
    const bool says = error.starts_with("net.pth: ") && error.find(part) != std::string::npos;
    CHECK(says);
    return says;
  }
  // The error of a file of an object and two storages of four float32 each.
  bool Refused(const std::string& object, const std::string& part) {
    const Data data = {{"0", std::string(16, '\0')}, {"1", std::string(16, '\0')}};
    return Refuses(ZipFile(object, data), part);
  }
};

const std::string kFour = Storage("FloatStorage", "0", 4);
const std::string kFourFloats = Bytes<float>({1, 2, 3, 4});

TEST_CASE_FIXTURE(Fixture, "torch files: every element type, in both forms") {
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
  Data data;
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

TEST_CASE_FIXTURE(Fixture, "torch files: strides become contiguous, storages are shared") {
  const std::string six = Storage("FloatStorage", "0", 6);
  const std::string object = Dict({{"whole", Rebuild(six, 0, {2, 3}, {3, 1})},
                                   {"transposed", Rebuild(six, 0, {3, 2}, {1, 3})},
                                   {"column", Rebuild(six, 1, {2}, {3})},
                                   {"repeated", Rebuild(six, 5, {2, 2}, {0, 0})},
                                   {"one", Rebuild(six, 4, {}, {})},
                                   {"unit", Rebuild(six, 2, {2, 1}, {3, INT64_MAX})},
                                   {"none", Rebuild(six, 6, {0, 3}, {3, 1})}});
  const Data data = {{"0", Bytes<float>({1, 2, 3, 4, 5, 6})}};
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

TEST_CASE_FIXTURE(Fixture, "torch files: parameters, and what older versions wrote") {
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
  const Data data = {{"0", kFourFloats}};
  for (const std::string& file : {ZipFile(object, data), StreamFile(object, data, {4})}) {
    const auto arrays = Read(file);
    REQUIRE(arrays.size() == 6);
    for (const char* name : {"rebuilt", "called", "made", "stated"})
      CHECK(arrays.at(name).ToVector() == std::vector<float>{1, 2, 3, 4});
    CHECK(arrays.at("old").ToVector() == std::vector<float>{2, 3});
    CHECK(arrays.at("part").ToVector() == std::vector<float>{2, 3});
  }
}

TEST_CASE_FIXTURE(Fixture, "torch files: the dict of tensors in a checkpoint") {
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

// ---- What training scripts put beside the tensors

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

TEST_CASE_FIXTURE(Fixture, "torch files: objects beside the tensors are skipped") {
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
  const Data data = {{"0", kFourFloats}};
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

TEST_CASE_FIXTURE(Fixture, "torch files: dicts of other classes, tensors with attributes") {
  const Data data = {{"0", kFourFloats}};
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

TEST_CASE_FIXTURE(Fixture,
                  "torch files: tensors that are not supported count where they are read") {
  const std::string state = Dict({{"w", Rebuild(kFour, 0, {4}, {1})}});
  const std::string complex = Rebuild(Storage("ComplexFloatStorage", "1", 2), 0, {2}, {1});
  const std::string sparse = Called(Global("torch._utils", "_rebuild_sparse_tensor"), {kNone, ")"});
  const std::string untyped =
      Called(Global("torch._utils", "_rebuild_tensor_v3"),
             {Tuple({Text("storage"), Global("torch.storage", "UntypedStorage"), Text("1"),
                     Text("cpu"), Int(16)}) +
              "Q"});
  const Data data = {{"0", kFourFloats}, {"1", std::string(16, '\0')}};
  const std::vector<int64_t> sizes = {4, 8};
  CHECK(Read(ZipFile(Dict({{"model", state}, {"x", complex}}), data)).contains("w"));
  CHECK(Read(StreamFile(Dict({{"model", state}, {"x", complex}}), data, sizes)).contains("w"));
  CHECK(Read(ZipFile(Dict({{"model", state}, {"x", sparse}}), data)).contains("w"));
  CHECK(Read(ZipFile(Dict({{"model", state}, {"x", untyped}}), data)).contains("w"));
  Refuses(ZipFile(Dict({{"w", complex}}), data), "elements of 'torch.ComplexFloatStorage'");
  Refuses(ZipFile(Dict({{"w", sparse}}), data), "made by 'torch._utils._rebuild_sparse_tensor'");
  Refuses(ZipFile(Dict({{"w", untyped}}), data), "made by 'torch._utils._rebuild_tensor_v3'");
}

TEST_CASE_FIXTURE(Fixture, "torch files: pickles of protocols 3 to 5") {
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

TEST_CASE_FIXTURE(Fixture, "torch files: which of several state dicts, and what others there are") {
  const auto tensor = [](int64_t at) { return Rebuild(kFour, at, {1}, {1}); };
  const auto dict = [&](int64_t at, const std::string& prefix = "") {
    return Dict({{prefix + "w", tensor(at)}, {prefix + "b", tensor(at)}});
  };
  const Data data = {{"0", kFourFloats}};
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

TEST_CASE_FIXTURE(Fixture, "torch files: what is not tensors is refused by name") {
  Refused(Global("os", "system") + "(" + Text("id") + "tR", "it refers to 'os.system'");
  Refused(Global("my.nets", "Net") + ")\x81", "if this was saved as a whole module");
  Refused(Global("torch.nn.modules.linear", "Linear") + ")\x81",
          "saved as a whole module, of 'torch.nn.modules.linear.Linear'; save its state_dict()");
  Refused(Global("a\xff", std::string("b\0", 2)), "it refers to 'a\\xff.b\\x00'");
  Refused("(i__main__\nX\n", "opcode INST does not occur");
  Refused("\xff", "0xff is not an opcode");
  Refused("", "a value is missing");
  Refused("\x80\x06", "a pickle of protocol 6");
  Refused("\x80\x01", "a pickle of protocol 1");
  Refused("K\1)R", "a call of what is not a name");
  Refused(Rebuild(kFour, 0, {4}, {1}), "it holds one tensor without a name");
  Refused("]", "it does not hold a dict");
  Refused(Dict({{"epoch", Int(1)}}), "its keys are: 'epoch'");
  Refused(Dict({}), "its keys are: none");
  Refused(Dict({{"w", Global("torch", "FloatStorage") + ")R"}}), "its keys are: 'w'");
  Refused(Dict({{"w", Global("torch.nn.parameter", "Parameter") + ")R"}}),
          "tensor 'w': it is not a tensor");
  Refused(Dict({{"model", Global("my.nets", "Net") + ")\x81"}}), "it refers to 'my.nets.Net'");
  Refuses(ZipOf({{"net/constants.pkl", ""}, {"net/data.pkl", ""}}), "a program of TorchScript");
  Refuses(ZipOf({{"a.npy", ""}}), "a zip archive without data.pkl");
  Refuses(ZipOf({{"a/data.pkl", ""}, {"b/data.pkl", ""}}), "several entries data.pkl");
  Refuses(ZipOf({{"a/data.pkl", PickleOf("}")}, {"a/byteorder", "big"}}), "another byte order");
  Refuses(std::string(257, '\0') + "ustar  ", "a tar file, as PyTorch before 0.1.10 wrote it");
  Refuses("", "not a file of torch.save");
  Refuses(PickleOf("}"), "not a file of torch.save");
  Refuses(kMagic + PickleOf(Int(1002)), "not version 1001");
  Refuses(kMagic + PickleOf("M" + Bytes<uint16_t>({1001})) +
              PickleOf(Dict({{"little_endian", kFalse}})),
          "another byte order");
}

TEST_CASE_FIXTURE(Fixture, "torch files: tensors outside their storages") {
  const auto refused = [&](int64_t offset, const std::vector<int64_t>& shape,
                           const std::vector<int64_t>& strides, const std::string& part) {
    Refused(Dict({{"w", Rebuild(kFour, offset, shape, strides)}}), "tensor 'w': " + part);
  };
  const int64_t most = INT64_MAX;
  refused(1, {4}, {1}, "shape [4] with strides [1] from element 1 is outside its storage of 4");
  refused(4, {}, {}, "shape [] with strides [] from element 4 is outside");
  refused(5, {0}, {1}, "shape [0]");
  refused(-1, {2}, {1}, "shape [2]");
  refused(3, {2}, {-1}, "shape [2] with strides [-1]");
  refused(0, {2}, {most}, "shape [2]");
  refused(most, {2}, {1}, "shape [2]");
  refused(0, {3, 3}, {most / 2, most / 2}, "shape [3, 3]");
  refused(0, {2, 2}, {2, 2}, "shape [2, 2]");
  refused(0, {-2}, {1}, "its shape is [-2]");
  refused(0, {int64_t{1} << 32, int64_t{1} << 32}, {0, 0}, "its shape is [");
  refused(0, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, "it has 9 dimensions");
  refused(0, {2, 2}, {1}, "it has 2 dimensions and 1 strides");

  const auto storage = [&](const std::string& id, const std::string& part) {
    Refused(Dict({{"w", Rebuild(id, 0, {1}, {1})}}), part);
  };
  storage(Storage("FloatStorage", "0", 5), "its storage '0' has 5 elements, the file holds 4");
  storage(Storage("FloatStorage", "0", -1), "a storage whose size is not a number");
  storage(Storage("FloatStorage", "0", 4, Ints({0, 2, 3})), "a part of storage '0' is outside it");
  storage(Storage("FloatStorage", "0", 4, Ints({0, 5, 0})), "a part of storage '0' is outside it");
  storage(Storage("FloatStorage", "2", 4), "has no entry 'net/data/2'");
  storage(Storage("FloatStorage", "../x", 4), "has no entry 'net/data/../x'");
  storage(Int(3) + "Q", "a persistent id that is not of a storage");
  storage(Int(3), "its elements are not in a storage");
  Refused(Dict({{"a", Rebuild(kFour, 0, {4}, {1})},
                {"b", Rebuild(Storage("IntStorage", "0", 4), 0, {4}, {1})}}),
          "storage '0' is of two types");
  Refused(Dict({{"w", Rebuild(kFour, 0, {4}, {1})}, {"w", Rebuild(kFour, 0, {4}, {1})}}),
          "tensor 'w': its name occurs twice");
}

TEST_CASE_FIXTURE(Fixture, "torch files: names are UTF-8, with a NUL or without") {
  const std::string tensor = Rebuild(kFour, 0, {4}, {1}), nul("a\0b", 3);
  CHECK(Read(ZipFile(Dict({{nul, tensor}}), {{"0", kFourFloats}})).contains(nul));
  Refused(Dict({{"caf\xe9", tensor}}), "the name 'caf\\xe9' is not UTF-8");
  // Paths that Python could not decode are texts with lone surrogates.
  CHECK(
      Read(ZipFile(Dict({{"w", tensor}, {"path", Text("caf\xed\xb3\xa9")}}), {{"0", kFourFloats}}))
          .contains("w"));
  Refused("}" + ShortText("caf\xe9") + tensor + "s", "the name 'caf\\xe9' is not UTF-8");
}

TEST_CASE_FIXTURE(Fixture, "torch files: a small file does not become a large one") {
  const int64_t before = runtime.storage().GetStats(Context::cpu()).allocations;
  // Values that contain others twice, and themselves; nesting of any depth.
  const std::string self = "}q\x01(" + Text("model") + "h\x01" + Text("net") + "h\x01u";
  Refused(self, "its keys are: 'model', 'net'");
  std::string twice = "}q\x01";
  for (int i = 0; i < 100; ++i)
    twice = "}(" + Text("model") + std::exchange(twice, "") + Text("net") + "h\x01uq\x01";
  Refused(twice, "its keys are: 'model', 'net'");
  Refused("}}", "values left over");
  Refused(std::string(200'000, ']') + std::string(199'999, 'a'), "it does not hold a dict");
  Refused(")" + std::string(200'000, '\x85'), "it does not hold a dict");
  Refused(std::string(200'000, '('), "a value is missing");
  std::string nested = Dict({{"w", Rebuild(kFour, 0, {4}, {1})}});
  for (int i = 0; i < 1000; ++i) nested = Dict({{"model", std::exchange(nested, "")}});
  Refused(nested, "it holds no tensors by name");
  std::string wrapped = Rebuild(kFour, 0, {4}, {1});
  for (int i = 0; i < 1000; ++i)
    wrapped = Global("torch.nn.parameter", "Parameter") + std::exchange(wrapped, "") + "\x85R";
  Refused(Dict({{"w", wrapped}}), "tensor 'w': it is not a tensor");
  // A dict for every use of one list.
  Refused(Global("collections", "OrderedDict") + "q\x01](" + Tuple({Text("a"), Int(1)}) +
              "eq\x02\x85Rh\x01h\x02\x85R",
          "a list of its own");
  // A key that every reference would copy, and a value for every byte.
  Refused(Dict({{"w", Rebuild(Storage("FloatStorage", std::string(65, '7'), 4), 0, {4}, {1})}}),
          "a storage whose key has 65 bytes; at most 64 are allowed");
  Refused(std::string((1 << 22) + 1, ']'), "more than 4194304 values");
  // Counts that the file does not hold.
  Refused("X" + Bytes<uint32_t>({~0u}), "the pickle ends early");
  Refused("T" + Bytes<uint32_t>({~0u}), "the pickle ends early");
  Refused("\x8a\xff", "the pickle ends early");
  Refused("j" + Bytes<uint32_t>({~0u}), "value 4294967295 was not stored before");
  Refused("}r" + Bytes<uint32_t>({~0u}) + "(Nu", "values are put into what cannot hold them");

  // Many tensors over the same MiB, and one that repeats an element.
  const std::string storage(1 << 20, '\0');
  const std::string mib = Rebuild(Storage("ByteStorage", "0", 1 << 20), 0, {1 << 20}, {1});
  std::string many = "}" + Text("first") + mib + "q\x01s";
  for (int i = 0; i < 3000; ++i) many += Text("a" + std::to_string(i)) + "h\x01s";
  Refuses(ZipFile(many, {{"0", storage}}), "its tensors share or repeat their bytes");
  Refused(Dict({{"w", Rebuild(kFour, 0, {1 << 20, 1 << 20}, {0, 0})}}),
          "its tensors share or repeat their bytes");
  CHECK(runtime.storage().GetStats(Context::cpu()).allocations == before);
}

TEST_CASE_FIXTURE(Fixture, "torch files: zip archives") {
  const std::string object = PickleOf(Dict({{"w", Rebuild(kFour, 0, {4}, {1})}}));
  const std::vector<Entry> whole = {
      {"data.pkl", object}, {"data/0", kFourFloats}, {std::string("\xff\0", 2), "x"}};
  for (bool wide : {false, true})
    CHECK(Read(ZipOf(whole, wide)).at("w").ToVector() == std::vector<float>{1, 2, 3, 4});

  const auto with = [&](size_t entry, uint16_t method, uint16_t flags) {
    std::vector<Entry> entries = whole;
    entries[entry].method = method;
    entries[entry].flags = flags;
    return ZipOf(entries);
  };
  Refuses(with(1, 8, 0), "entry 'data/0' of the zip archive is compressed (deflate)");
  Refuses(with(0, 93, 0), "entry 'data.pkl' of the zip archive is compressed (method 93)");
  Refuses(with(1, 0, 1), "entry 'data/0' of the zip archive is encrypted");
  CHECK(ErrorOf(with(2, 8, 1)).empty());  // is not read

  std::string zip = ZipOf(whole);
  const size_t directory = zip.find("PK\x01\x02"), second = zip.find("PK\x01\x02", directory + 4);
  const auto changed = [&](size_t at, const std::string& bytes) {
    return std::string(zip).replace(at, bytes.size(), bytes);
  };
  Refuses(changed(zip.find(kFourFloats), "x"), "'data/0' of the zip archive is damaged: its check");
  Refuses(changed(second + 24, "\x05"), "has 16 bytes, its directory says 5");
  Refuses(changed(second + 42, Bytes<uint32_t>({~0u - 1})), "a part of it is outside the file");
  Refuses(changed(second + 42, Bytes<uint32_t>({~0u})), "a part of it is outside the file");
  Refuses(changed(second + 42, Bytes<uint32_t>({1})), "a header is missing");
  Refuses(changed(second + 42, Bytes<uint32_t>({0})), "has another name in its directory");
  Refuses(changed(directory + 20, Bytes<uint32_t>({~0u >> 1})), "outside the file");
  // The first entry reaches into the second, in both of its sizes.
  Refuses(changed(directory + 20, Bytes<uint32_t>({static_cast<uint32_t>(object.size()) + 40})),
          "the entries 'data.pkl' and 'data/0' of the zip archive overlap");
  Refuses(ZipOf({{"data.pkl", object}, {"data.pkl", object}}), "two entries 'data.pkl'");
  Refuses(changed(zip.size() - 12, Bytes<uint16_t>({9})), "the zip archive is damaged");
  Refuses(changed(zip.size() - 6, Bytes<uint32_t>({~0u})), "outside the file");
}

TEST_CASE_FIXTURE(Fixture, "torch files: a file truncated anywhere") {
  const std::string object = Dict({{"w", Rebuild(kFour, 0, {4}, {1})}, {"epoch", Int(1)}});
  const Data data = {{"0", kFourFloats}};
  for (const std::string& file : {ZipFile(object, data), StreamFile(object, data, {4})}) {
    CHECK(ErrorOf(file).empty());
    for (size_t cut = 0; cut < file.size(); ++cut)
      CHECK_FALSE(ErrorOf(file.substr(0, cut)).empty());
  }
  std::string stream = StreamFile(object, data, {4});
  const std::string count = Bytes<int64_t>({4});
  const size_t at = stream.size() - kFourFloats.size() - count.size();
  Refuses(std::string(stream).replace(at, 8, Bytes<int64_t>({-1})), "storage '0' has -1 elements");
  Refuses(std::string(stream).replace(at, 8, Bytes<int64_t>({INT64_MAX})), "more than the rest");
  Refuses(std::string(stream).replace(at, 8, Bytes<int64_t>({3})), "the file holds 3");
  Refuses(StreamFile(object, {{"0", kFourFloats}, {"0", kFourFloats}}, {4, 4}), "twice");
  Refuses(StreamFile(object, {{"1", kFourFloats}}, {4}), "no tensor says what storage '1' holds");
  Refuses(StreamFile(object, {}, {}), "tensor 'w': its storage '0' is not in the file");
}

}  // namespace
}  // namespace mxtrain
