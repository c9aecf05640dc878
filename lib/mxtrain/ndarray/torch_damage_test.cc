// SPDX-License-Identifier: Apache-2.0
// Files of PyTorch that are refused.
#include <doctest/doctest.h>

#include <utility>

#include "tests/support/torch_bytes.h"

namespace mxtrain::test {
namespace {

TEST_CASE_FIXTURE(TorchFixture, "torch files: what is not tensors is refused by name") {
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

TEST_CASE_FIXTURE(TorchFixture, "torch files: tensors outside their storages") {
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

TEST_CASE_FIXTURE(TorchFixture, "torch files: a small file does not become a large one") {
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

TEST_CASE_FIXTURE(TorchFixture, "torch files: zip archives") {
  const std::string object = PickleOf(Dict({{"w", Rebuild(kFour, 0, {4}, {1})}}));
  const std::vector<ZipEntry> whole = {
      {"data.pkl", object}, {"data/0", kFourFloats}, {std::string("\xff\0", 2), "x"}};
  for (bool wide : {false, true})
    CHECK(Read(ZipOf(whole, wide)).at("w").ToVector() == std::vector<float>{1, 2, 3, 4});

  const auto with = [&](size_t entry, uint16_t method, uint16_t flags) {
    std::vector<ZipEntry> entries = whole;
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

TEST_CASE_FIXTURE(TorchFixture, "torch files: a file truncated anywhere") {
  const std::string object = Dict({{"w", Rebuild(kFour, 0, {4}, {1})}, {"epoch", Int(1)}});
  const Storages data = {{"0", kFourFloats}};
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
}  // namespace mxtrain::test
