// SPDX-License-Identifier: Apache-2.0
// What is wrong with a file but costs no pixel is accepted; what costs pixels is refused, wherever
// it is and whatever is asked of the file.
#include <doctest/doctest.h>

#include "tests/support/image_bytes.h"
#include "tests/support/pipeline_data.h"

namespace mxtrain::test {
namespace {

std::string Inserted(std::string bytes, size_t at, const std::string& more) {
  return bytes.insert(at, more);
}

// Where the first segment with this marker begins.
size_t SegmentAt(const std::string& jpeg, unsigned char marker) {
  const size_t at = jpeg.find(std::string{'\xff', static_cast<char>(marker)});
  REQUIRE(at != std::string::npos);
  return at;
}

// All ways to ask for a part of it.
std::vector<DecodeOptions> Requests() {
  std::vector<DecodeOptions> all;
  for (const bool exact : {false, true}) {
    for (const int part : {1, 2, 4}) {
      for (const double scale : {1.0, 0.25}) {
        all.push_back({.exact = exact, .to_end = true, .part = [=](int height, int width) {
                         return DecodeOptions::Part{{0, 0, height / part, width / part}, scale};
                       }});
      }
    }
  }
  return all;
}

void CheckSame(const std::string& bytes, const std::string& reference) {
  const auto image = DecodeImage(bytes), wanted = DecodeImage(reference);
  REQUIRE_MESSAGE(image.has_value(), image.error().reason);
  CHECK(image->pixels == wanted->pixels);
  for (const DecodeOptions& options : Requests()) {
    const auto part = DecodeImage(bytes, options), wanted_part = DecodeImage(reference, options);
    REQUIRE(part.has_value());
    CHECK(part->pixels == wanted_part->pixels);
  }
}

TEST_CASE("a JPEG with bytes that belong to nothing has the pixels of one without them") {
  for (const int channels : {1, 3}) {
    const std::string jpeg = EncodeJpeg(Gradient(64, 48, channels));
    const size_t end = jpeg.size() - 2;
    CheckSame(Inserted(jpeg, end, std::string(228, '\0')), jpeg);
    CheckSame(Inserted(jpeg, end, std::string("\x17\xff\0\x2a", 4)), jpeg);
    for (const auto marker : std::initializer_list<unsigned char>{0xdb, 0xc0, 0xc4, 0xda})
      CheckSame(Inserted(jpeg, SegmentAt(jpeg, marker), "padding"), jpeg);
    CheckSame(jpeg + "what a camera adds", jpeg);
  }
}

TEST_CASE("a JPEG of another revision of JFIF, or with an unknown colour transform, is read") {
  const std::string jpeg = EncodeJpeg(Gradient(64, 48, 3));
  std::string revision = jpeg;
  revision[SegmentAt(jpeg, 0xe0) + 9] = '\x02';  // 2.01
  CheckSame(revision, jpeg);
  // Adobe's segment: version, two flags and the transform; beside JFIF's it says nothing.
  const std::string adobe =
      std::string("\xff\xee\0\x0e", 4) + "Adobe" + std::string("\0\x64\0\0\0\0\x07", 7);
  CheckSame(Inserted(jpeg, SegmentAt(jpeg, 0xdb), adobe), jpeg);
}

TEST_CASE("a JPEG that lacks pixels is refused, whatever part of it is asked for") {
  const std::string jpeg = EncodeJpeg(Pattern(96, 64, 3));
  const size_t scan = SegmentAt(jpeg, 0xda) + 14;
  std::string damaged = jpeg, cut = jpeg;
  // In the lowest rows: all bits set are no code.
  for (size_t at = jpeg.size() - 80; at < jpeg.size() - 20; at += 2)
    damaged.replace(at, 2, "\xff\0", 2);
  cut.erase(scan + (jpeg.size() - scan) / 2, (jpeg.size() - scan) / 2 - 2);  // but for the end
  for (const std::string& bytes : {damaged, cut}) {
    CHECK_FALSE(DecodeImage(bytes).has_value());
    for (const DecodeOptions& options : Requests())
      CHECK_FALSE(DecodeImage(bytes, options).has_value());
  }
  // What `to_end` is for.
  DecodeOptions upper{.exact = false, .part = [](int height, int width) {
                        return DecodeOptions::Part{{0, 0, height / 4, width}, 1};
                      }};
  CHECK(DecodeImage(damaged, upper).has_value());
}

TEST_CASE("whether an example is usable does not depend on transforms, epoch, cache or threads") {
  const TempDir dir;
  for (int i = 0; i < 6; ++i) {
    std::string jpeg = EncodeJpeg(Pattern(96, 64, 3));
    const size_t end = jpeg.size();
    if (i == 1) jpeg.insert(end - 2, 200, '\0');
    if (i == 2 || i == 5) {
      for (size_t at = end - 80; at < end - 20; at += 2) jpeg.replace(at, 2, "\xff\0", 2);
    }
    dir.Write(format("{}/{}.jpg", i % 2 ? "odd" : "even", i), jpeg);
  }
  Runtime runtime = MakeRuntime();
  const std::vector<TransformSpec> whole = {{"resize", {{"", "(16, 16)"}}}},
                                   middle = {{"center_crop", {{"", "16"}}}},
                                   random = {{"random_crop", {{"", "16"}}}};
  for (const auto& transforms : {whole, middle, random}) {
    for (const char* exact : {"False", "True"}) {
      for (const char* cache : {"none", "ram"}) {
        const auto iter = NewPipeline(runtime, Folder(dir), transforms,
                                      Param({{"batch_size", "2"},
                                             {"max_bad", "0.5"},
                                             {"workers", "3"},
                                             {"cache", cache},
                                             {"exact_decode", exact}}));
        for (int64_t epoch = 0; epoch < 3; ++epoch) {
          iter->Reset(epoch);
          RunOut(*iter);
          std::set<std::string> bad;
          for (const auto& [name, reason] : iter->stats().bad) bad.insert(name);
          CHECK(bad == std::set<std::string>{dir.path("even/2.jpg"), dir.path("odd/5.jpg")});
        }
      }
    }
  }
}

TEST_CASE("a PNG with optional chunks that make no sense has the pixels of one without them") {
  const std::string rows("\0\x10\x20\0\x30\x40", 6);
  const std::string plain = Png(2, 2, 8, 0, rows);
  const auto with = [&](const std::string& chunks) { return Png(2, 2, 8, 0, rows, false, chunks); };
  std::string wrong_crc = PngChunk("tEXt", std::string("Title\0none", 10));
  wrong_crc.back() = static_cast<char>(wrong_crc.back() + 1);
  const std::string gamma = PngChunk("gAMA", Number(45455, 4, true));
  for (const std::string& chunks :
       {PngChunk("PLTE", "abcdef"), PngChunk("iCCP", std::string("x\0\0no profile", 13)), wrong_crc,
        gamma + gamma, PngChunk("sBIT", "12345"), PngChunk("bKGD", "1"), PngChunk("tIME", "now"),
        PngChunk("eXIf", "nothing"), PngChunk("pHYs", "")}) {
    CheckSame(with(chunks), plain);
  }
  // Transparency and everything that is not optional count.
  std::string transparency = PngChunk("tRNS", std::string("\0\x10", 2));
  CHECK(DecodeImage(with(transparency))->pixels == std::vector<uint8_t>{255, 0x20, 0x30, 0x40});
  transparency.back() = static_cast<char>(transparency.back() + 1);
  CHECK(Has(WhyNot(with(transparency)), "damaged or unsupported PNG: tRNS: CRC error"));
  std::string data = plain;
  data[data.size() - 13] = static_cast<char>(data[data.size() - 13] + 1);  // the last of IDAT's CRC
  CHECK(Has(WhyNot(data), "damaged or unsupported PNG: IDAT: CRC error"));
}

TEST_CASE("an EXIF orientation counts as a number of 16 or 32 bits, in either byte order") {
  const std::string jpeg = EncodeJpeg(Gradient(16, 32, 3));
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool big_endian : {false, true}) {
      const std::string bytes = WithOrientation(jpeg, orientation, big_endian, 3);
      CHECK(ProbeImage(bytes)->orientation == orientation);
      CHECK(ProbeImage(WithOrientation(jpeg, orientation, big_endian, 4))->orientation ==
            orientation);
      CHECK(ProbeImage(WithOrientation(jpeg, orientation, big_endian, 2))->orientation ==
            1);  // text
      CheckSame(WithOrientation(jpeg, orientation, big_endian, 4), bytes);
      // Also behind bytes that belong to nothing.
      CHECK(ProbeImage(Inserted(bytes, 2, "padding"))->orientation == orientation);
    }
  }
}

TEST_CASE("the last row of a BMP may lack what fills it up") {
  const std::string rows("\1\2\3\4\5\6\0\0\7\x8\x9\xa\xb\xc\0\0", 16);
  const std::string whole = SmallBmp{.rows = rows}.bytes();
  for (const size_t cut : {1, 2}) CheckSame(whole.substr(0, whole.size() - cut), whole);
  CHECK(Has(WhyNot(whole.substr(0, whole.size() - 3)), "the file ends early"));
}

}  // namespace
}  // namespace mxtrain::test
