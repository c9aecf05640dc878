// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/blocked_layout.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/device/backend.h"
#include "mxtrain/device/cpu/parallel.h"

namespace mxtrain {
namespace {

// Calls f with every index of a shape.
void ForEachIndex(const TShape& shape, const std::function<void(const std::vector<int64_t>&)>& f) {
  std::vector<int64_t> index(static_cast<size_t>(shape.ndim()));
  const int64_t size = shape.Size();
  for (int64_t i = 0; i < size; ++i) {
    int64_t rest = i;
    for (int axis = shape.ndim() - 1; axis >= 0; --axis) {
      index[static_cast<size_t>(axis)] = rest % shape[axis];
      rest /= shape[axis];
    }
    f(index);
  }
}

// The element offset by the definition of the name: the array has one dimension per letter and one
// per block, in the order of the name, row-major. An index of a split axis is a number in the mixed
// radix of its pieces, leftmost piece first.
int64_t OffsetByName(const std::string& name, const TShape& shape,
                     const std::vector<int64_t>& index) {
  struct Piece {
    int axis;
    int64_t size;
  };
  std::vector<Piece> pieces;
  size_t at = 0;
  for (; at < name.size() && std::isalpha(name[at]); ++at)
    pieces.push_back({std::tolower(name[at]) - 'a', 0});
  const size_t outer = pieces.size();
  while (at < name.size()) {
    size_t used = 0;
    const int64_t size = std::stoll(name.substr(at), &used);
    at += used;
    pieces.push_back({name[at++] - 'a', size});
  }
  for (size_t p = 0; p < outer; ++p) {
    int64_t block = 1;
    for (size_t q = outer; q < pieces.size(); ++q)
      block *= pieces[q].axis == pieces[p].axis ? pieces[q].size : 1;
    pieces[p].size = (shape[pieces[p].axis] + block - 1) / block;
  }
  int64_t offset = 0;
  for (size_t p = 0; p < pieces.size(); ++p) {
    int64_t inside = 1;  // weight of the pieces of this axis to the right
    for (size_t q = p + 1; q < pieces.size(); ++q)
      inside *= pieces[q].axis == pieces[p].axis ? pieces[q].size : 1;
    const int64_t digit = index[static_cast<size_t>(pieces[p].axis)] / inside % pieces[p].size;
    offset = offset * pieces[p].size + digit;
  }
  return offset;
}

struct NamedShape {
  const char* name;
  TShape shape;
};
const NamedShape kCases[] = {{"abcd", {2, 3, 4, 5}},
                             {"acdb", {2, 3, 4, 5}},
                             {"aBcd8b", {2, 11, 3, 5}},
                             {"aBcd16b", {1, 16, 7, 2}},
                             {"aBcd8b", {3, 8, 1, 1}},
                             {"ABcd8b8a", {9, 17, 3, 3}},
                             {"Abcd8a", {5, 3, 2, 2}},
                             {"ABcd4b16a4b", {20, 19, 1, 2}},
                             {"aBc8b", {2, 9, 4}},
                             {"BA4b2a", {5, 6}},
                             {"aBcde16b", {1, 3, 2, 2, 3}},
                             {"cdba", {4, 3, 2, 5}},
                             {"a", {7}},
                             {"A16a", {5}},
                             {"aBcd4b", {2, 6, 3, 1}}};

TEST_CASE("offset tables follow the name") {
  for (const auto& [name, shape] : kCases) {
    CAPTURE(name);
    const auto layout = BlockedLayout::FromName(name);
    CHECK(layout->Name() == name);
    std::vector<std::vector<int64_t>> tables;
    for (int axis = 0; axis < shape.ndim(); ++axis)
      tables.push_back(layout->OffsetTable(shape, axis));
    std::set<int64_t> seen;
    ForEachIndex(layout->PaddedShape(shape), [&](const std::vector<int64_t>& index) {
      int64_t offset = 0;
      for (size_t axis = 0; axis < tables.size(); ++axis)
        offset += tables[axis][static_cast<size_t>(index[axis])];
      REQUIRE(offset == OffsetByName(name, shape, index));
      seen.insert(offset);
    });
    const int64_t stored = layout->Bytes(shape, DType::kFloat32) / 4;
    CHECK(static_cast<int64_t>(seen.size()) == stored);  // a bijection
    CHECK(*seen.rbegin() == stored - 1);
    CHECK(layout->Padded(shape) == (stored != shape.Size()));
  }
}

TEST_CASE("arrays that lie as plain ones, and channels side by side") {
  const auto backend = NewCpuBackend(1);
  const auto named = [&](const char* name) {
    return backend->Intern(BlockedLayout::FromName(name));
  };
  const Layout plain, by_8 = named("aBcd8b"), by_16 = named("aBcd16b"), last = named("acdb"),
                      images = named("Abcd8a");
  const TShape pixel = {8, 16, 1, 1};
  for (const Layout& layout : {plain, by_8, by_16, last}) CHECK(Canonical(pixel, layout) == plain);
  CHECK(Canonical(pixel, images) == images);
  CHECK(Canonical({8, 16, 1, 2}, by_8) == by_8);
  CHECK(Canonical({8, 11, 1, 1}, by_8) == by_8);  // padding
  CHECK(Canonical({8, 1, 3, 5}, last) == plain);
  CHECK(AsOffered(pixel, by_8, by_16) == by_16);
  CHECK(AsOffered(pixel, by_8, plain) == plain);
  CHECK(AsOffered(pixel, by_8, images) == by_8);
  CHECK(AsOffered(pixel, by_8, std::nullopt) == by_8);
  CHECK(AsOffered(pixel, images, plain) == images);
  CHECK(AsOffered({8, 16, 1, 2}, by_8, by_16) == by_8);

  CHECK(ChannelBlock(pixel, plain) == 1);
  CHECK(ChannelBlock(pixel, by_8) == 8);
  CHECK(ChannelBlock(pixel, last) == 16);
  CHECK(ChannelBlock(pixel, images) == 0);
  CHECK(ChannelBlock(pixel, named("ABcd8b8a")) == 0);
  CHECK(ChannelBlock(pixel, named("cBad8b")) == 0);
}

TEST_CASE("malformed names are internal errors") {
  for (const char* name : {"aBcd", "abcd8b", "aBcd8", "aBcd8B", "aacd", "acd", "aBcd1b", "aBcdb8",
                           "aBcd8e", "aBcd99999999999b", "8a"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(BlockedLayout::FromName(name), Error);
  }
  CHECK_THROWS_AS(BlockedLayout::FromName("aBcd8b")->Bytes({1, 2, 3}, DType::kFloat32), Error);
}

TEST_CASE("the backend keeps one object per layout") {
  const auto backend = NewCpuBackend(2);
  const Layout a = backend->Intern(BlockedLayout::FromName("aBcd8b")),
               b = backend->Intern(BlockedLayout::FromName("aBcd8b"));
  CHECK(a == b);
  CHECK(a != backend->Intern(BlockedLayout::FromName("aBcd16b")));
  CHECK(a.Name() == "aBcd8b");
  CHECK(a.Bytes({1, 9, 2, 2}, DType::kFloat16) == 16 * 4 * 2);
}

template <typename T>
void CheckReorder(Backend& backend, DType type, const NamedShape& from_case,
                  const std::string& to_name) {
  const TShape& shape = from_case.shape;
  auto layout_of = [&](const std::string& name) {
    return name == "plain" ? Layout() : backend.Intern(BlockedLayout::FromName(name));
  };
  const TensorSpec from{shape, type, layout_of(from_case.name)},
      to{shape, type, layout_of(to_name)};
  auto offset_in = [&](const TensorSpec& spec, const std::vector<int64_t>& index) {
    std::string plain = "abcdefgh";
    plain.resize(static_cast<size_t>(shape.ndim()));
    return static_cast<size_t>(
        OffsetByName(spec.layout.plain() ? plain : spec.layout.Name(), shape, index));
  };
  std::vector<T> src(static_cast<size_t>(from.Bytes()) / sizeof(T)),
      dst(static_cast<size_t>(to.Bytes()) / sizeof(T)), expected(dst.size());
  T value = 1;
  ForEachIndex(shape, [&](const std::vector<int64_t>& index) {
    src[offset_in(from, index)] = value;
    expected[offset_in(to, index)] = value;
    value = static_cast<T>(value + 1);
  });
  std::memset(dst.data(), 0xee, dst.size() * sizeof(T));
  backend.Reorder({}, from, src.data(), to, dst.data());
  CHECK(dst == expected);
}

TEST_CASE("reorders put every element in its place and zeros in the padding") {
  const auto backend = NewCpuBackend(3);
  backend->EnterThread();
  for (const NamedShape& c : kCases) {
    CAPTURE(c.name);
    CheckReorder<uint32_t>(*backend, DType::kFloat32, {"plain", c.shape}, c.name);
    CheckReorder<uint32_t>(*backend, DType::kFloat32, c, "plain");
    CheckReorder<uint8_t>(*backend, DType::kUint8, {"plain", c.shape}, c.name);
    CheckReorder<uint16_t>(*backend, DType::kBfloat16, c, "plain");
    CheckReorder<uint64_t>(*backend, DType::kInt64, {"plain", c.shape}, c.name);
    CheckReorder<uint64_t>(*backend, DType::kFloat64, c, c.name);
  }
  CheckReorder<uint32_t>(*backend, DType::kInt32, {"aBcd8b", {2, 19, 5, 7}}, "aBcd16b");
  CheckReorder<uint32_t>(*backend, DType::kInt32, {"ABcd8b8a", {17, 9, 3, 3}}, "cdba");
  CheckReorder<uint16_t>(*backend, DType::kFloat16, {"acdb", {2, 19, 5, 7}}, "aBcd8b");
  SetTeamSize(1);
}

TEST_CASE("reorders of whole tiles put every element in its place and zeros in the padding") {
  const auto backend = NewCpuBackend(3);
  backend->EnterThread();
  for (const auto& [from, to] : {std::pair{"ABcd16b16a", "BcdA16a16b"},
                                 {"ABcd16a16b", "ABcd16b16a"},
                                 {"ABcd8b8a", "BcdA8b8a"},
                                 {"ABcd6b4a", "BAcd4a6b"}}) {
    CAPTURE(from);
    CheckReorder<uint32_t>(*backend, DType::kFloat32, {from, {37, 21, 3, 2}}, to);
    CheckReorder<uint32_t>(*backend, DType::kFloat32, {to, {130, 70, 3, 3}}, from);
    CheckReorder<uint16_t>(*backend, DType::kBfloat16, {from, {37, 21, 3, 2}}, to);
  }
  CheckReorder<uint32_t>(*backend, DType::kFloat32, {"ABcd16b16a", {20, 40, 1, 1}}, "ABcd8b8a");
  SetTeamSize(1);
}

TEST_CASE("reorders between layouts of the same tiles") {
  const auto backend = NewCpuBackend(3);
  backend->EnterThread();
  for (const char* to :
       {"ABcd16b16a", "ABcd8b16a2b", "ABcd8a16b2a", "BAcd8a16b2a", "BAcd16a16b", "cdAB16b16a"}) {
    CAPTURE(to);
    CheckReorder<uint32_t>(*backend, DType::kFloat32, {"ABcd16b16a", {48, 32, 3, 2}}, to);
    // With padding.
    CheckReorder<uint16_t>(*backend, DType::kBfloat16, {"ABcd8b16a2b", {33, 17, 1, 2}}, to);
  }
  // Tiles of two kinds.
  CheckReorder<uint16_t>(*backend, DType::kBfloat16, {"Acdb16a", {33, 3, 5, 3}}, "AcdB16a2b");
  SetTeamSize(1);
}

// float32 to a type of 16 bits and back, of values that are exact in both, and of some that are
// not.
template <typename Narrow>
void CheckConversion(DType type, Backend& backend, const std::string& from_name,
                     const TShape& shape, const std::string& to_name) {
  CAPTURE(from_name);
  CAPTURE(to_name);
  const auto layout_of = [&](const std::string& name) {
    return name == "plain" ? Layout() : backend.Intern(BlockedLayout::FromName(name));
  };
  const TensorSpec wide{shape, DType::kFloat32, layout_of(from_name)},
      narrow{shape, type, layout_of(to_name)};
  const TensorSpec plain{shape, DType::kFloat32, Layout()};
  std::vector<float> values, back(static_cast<size_t>(shape.Size()));
  for (int64_t i = 0; i < shape.Size(); ++i)
    values.push_back(static_cast<float>(i % 251) / 8 + static_cast<float>(i % 7) / 4096);
  std::vector<float> source(static_cast<size_t>(wide.Bytes()) / 4), again(source.size());
  std::vector<uint16_t> middle(static_cast<size_t>(narrow.Bytes()) / 2, 0xeeee);
  backend.Reorder({}, plain, values.data(), wide, source.data());
  backend.Reorder({}, wide, source.data(), narrow, middle.data());
  backend.Reorder({}, narrow, middle.data(), wide, again.data());
  backend.Reorder({}, wide, again.data(), plain, back.data());
  for (size_t i = 0; i < values.size(); ++i)
    REQUIRE(back[i] == static_cast<float>(Narrow(values[i])));
  const auto nonzero =
      std::count_if(middle.begin(), middle.end(), [](uint16_t bits) { return bits != 0; });
  // The padding is zero.
  CHECK(nonzero == std::count_if(values.begin(), values.end(), [](float v) { return v != 0; }));
}

template <typename Narrow>
void CheckConversions(Backend& backend, DType type) {
  const auto check = [&](const std::string& from, const TShape& shape, const std::string& to) {
    CheckConversion<Narrow>(type, backend, from, shape, to);
  };
  check("plain", {3, 5, 7}, "plain");
  check("plain", {2, 19, 5, 7}, "aBcd16b");
  check("aBcd16b", {2, 19, 5, 7}, "plain");
  check("aBcd16b", {2, 19, 5, 7}, "aBcd16b");
  check("ABcd16b16a", {33, 17, 3, 1}, "ABcd8b16a2b");
  check("ABcd16b16a", {33, 17, 3, 1}, "BAcd8a16b2a");
  check("Acdb16a", {16, 3, 7, 7}, "AcdB16a2b");
}

TEST_CASE("reorders between float32 and the types of 16 bits") {
  const auto backend = NewCpuBackend(2);
  backend->EnterThread();
  CheckConversions<bfloat16>(*backend, DType::kBfloat16);
  CheckConversions<float16>(*backend, DType::kFloat16);
  const TensorSpec from{{2}, DType::kFloat32, Layout()}, to{{2}, DType::kInt32, Layout()};
  int32_t words[2] = {};
  CHECK_THROWS_AS(backend->Reorder({}, from, words, to, words), Error);
  SetTeamSize(1);
}

TEST_CASE("large reorders use the whole team and agree") {
  const auto backend = NewCpuBackend(4);
  backend->EnterThread();
  CheckReorder<uint32_t>(*backend, DType::kFloat32, {"plain", {3, 37, 31, 29}}, "aBcd8b");
  CheckReorder<uint32_t>(*backend, DType::kFloat32, {"aBcd16b", {3, 37, 31, 29}}, "plain");
  CheckReorder<uint32_t>(*backend, DType::kFloat32, {"plain", {130, 70, 3, 3}}, "ABcd8b8a");
  SetTeamSize(1);
}

TEST_CASE("arrays without elements and scalars") {
  const auto backend = NewCpuBackend(1);
  const Layout blocked = backend->Intern(BlockedLayout::FromName("aBcd8b"));
  backend->Reorder({}, {{0, 3, 2, 2}, DType::kFloat32, {}}, nullptr,
                   {{0, 3, 2, 2}, DType::kFloat32, blocked}, nullptr);
  const float in = 3;
  float out = 0;
  backend->Reorder({}, {TShape::Parse("()"), DType::kFloat32, {}}, &in,
                   {TShape::Parse("()"), DType::kFloat32, {}}, &out);
  CHECK(out == 3);
  CHECK_THROWS_AS(backend->Reorder({}, {{1, 3, 2, 2}, DType::kFloat32, {}}, &in,
                                   {{1, 3, 2, 2}, DType::kInt32, blocked}, &out),
                  Error);
}

}  // namespace
}  // namespace mxtrain
