// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/image.h"

#include <doctest/doctest.h>
#include <turbojpeg.h>

#include <algorithm>

#include "tests/support/image_bytes.h"

using namespace mxtrain;
using namespace mxtrain::io;
using namespace mxtrain::test;

namespace {

// 24 bits per pixel, rows from the bottom, or from the top when `down`.
std::string Bmp(const Image& image, bool down = false) {
  std::string rows;
  for (int i = 0; i < image.height; ++i) {
    const uint8_t* row = image.row(down ? i : image.height - 1 - i);
    for (int x = 0; x < image.width; ++x) {
      for (const int c : {2, 1, 0}) rows += static_cast<char>(row[3 * x + c]);
    }
    rows.append(static_cast<size_t>((4 - image.width * 3 % 4) % 4), '\0');
  }
  const auto little = [](int64_t v, int n) { return Number(static_cast<uint32_t>(v), n, false); };
  return "BM" + little(static_cast<int64_t>(54 + rows.size()), 4) + little(0, 4) + little(54, 4) +
         little(40, 4) + little(image.width, 4) + little(down ? -image.height : image.height, 4) +
         little(1, 2) + little(24, 2) + std::string(24, '\0') + rows;
}

}  // namespace

TEST_CASE("data after a PNG's last row are ignored, however much they unpack to") {
  const std::string bomb = Png(16, 16, 8, 2, std::string(size_t{256} << 20, '\0'));
  REQUIRE(bomb.size() < 300'000);
  CHECK(DecodeImage(bomb)->pixels == std::vector<uint8_t>(16 * 16 * 3));
  CHECK(DecodeImage(Png(16, 16, 8, 2, std::string(16 * 49 + 1000, '\0'))).has_value());
}

// stb_image gave no reason for the first, and then that of an earlier file.
TEST_CASE(
    "a PNG is rejected for data that describe no code, for a wrong Adler-32, and for rows that are "
    "missing") {
  const std::string header("\0\0\0\x11\0\0\0\x09\x08\x02\0\0\0", 13), rows(9 * 52, '\0');
  const auto png = [&](const std::string& packed) {
    return "\x89PNG\r\n\x1a\n" + PngChunk("IHDR", header) + PngChunk("IDAT", packed) +
           PngChunk("IEND", "");
  };
  CHECK(Has(WhyNot(png(std::string("\x78\x9c\x07\0\0\0\0\0", 8))), "damaged or unsupported PNG: "));
  std::string packed = Packed(rows);
  CHECK(DecodeImage(png(packed)).has_value());
  packed.back() ^= 1;
  CHECK(Has(WhyNot(png(packed)), "damaged or unsupported PNG: IDAT: "));
  CHECK_FALSE(Has(WhyNot(png(packed)), "IDAT: IDAT: "));
  packed.resize(packed.size() - 4);
  CHECK(Has(WhyNot(png(packed)), "damaged or unsupported PNG: "));
  CHECK(WhyNot(png(Packed(rows.substr(52)))) == "damaged or unsupported PNG: rows are missing");
}

TEST_CASE("a PNG of an impossible colour type or depth is rejected") {
  const std::string rows(3 * 64, '\0');
  for (const std::pair<int, int>& wrong :
       {std::pair{3, 0}, {16, 3}, {4, 2}, {2, 4}, {1, 6}, {8, 1}, {8, 7}}) {
    CAPTURE(wrong.first);
    CHECK(Has(WhyNot(Png(3, 3, wrong.first, wrong.second, rows)), "damaged or unsupported PNG"));
  }
}

TEST_CASE("an interlaced PNG has the pixels of a plain one") {
  constexpr struct {
    int x, y, dx, dy;
  } kPasses[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                 {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  for (const auto& [height, width] : {std::pair{1, 1}, {2, 3}, {13, 11}}) {
    const Image image = Pattern(height, width, 3);
    std::string rows;
    for (const auto& pass : kPasses) {
      for (int y = pass.y; y < height && pass.x < width; y += pass.dy) {
        rows += '\0';
        for (int x = pass.x; x < width; x += pass.dx)
          rows.append(reinterpret_cast<const char*>(image.row(y)) + 3 * x, 3);
      }
    }
    const auto [h, w] = std::pair(static_cast<uint32_t>(height), static_cast<uint32_t>(width));
    const auto decoded = DecodeImage(Png(w, h, 8, 2, rows, true));
    REQUIRE(decoded.has_value());
    CHECK(decoded->pixels == image.pixels);
    CHECK(WhyNot(Png(w, h, 8, 2, rows.substr(0, rows.size() - 3 * w - 1), true)) ==
          "damaged or unsupported PNG: rows are missing");
  }
}

std::string Masks(std::initializer_list<uint32_t> masks) {
  std::string text;
  for (const uint32_t mask : masks) text += Number(mask, 4, false);
  return text;
}

TEST_CASE("a BMP with a palette or with channel masks") {
  using Pixels = std::vector<uint8_t>;
  const std::string two("\x01\x02\x03\x00\x0a\x0b\x0c\x00", 8),
      two_old("\x01\x02\x03\x0a\x0b\x0c", 6);
  const Pixels corners{3, 2, 1, 12, 11, 10, 12, 11, 10, 3, 2, 1};  // rows are stored bottom-up
  CHECK(
      DecodeImage(
          SmallBmp{.bits = 1, .extra = two, .rows = std::string("\x80\0\0\0\x40\0\0\0", 8)}.bytes())
          ->pixels == corners);
  CHECK(DecodeImage(SmallBmp{.bits = 4,
                             .colours = 2,
                             .extra = two,
                             .rows = std::string("\x10\0\0\0\x01\0\0\0", 8)}
                        .bytes())
            ->pixels == corners);
  CHECK(DecodeImage(
            SmallBmp{.bits = 8, .extra = two, .rows = std::string("\1\0\0\0\0\1\0\0", 8)}.bytes())
            ->pixels == corners);
  CHECK(DecodeImage(SmallBmp{.bits = 8,
                             .header = 12,
                             .extra = two_old,
                             .rows = std::string("\1\0\0\0\0\1\0\0", 8)}
                        .bytes())
            ->pixels == corners);
  // 5 bits 0x10 become 0x84, 6 bits 0x20 become 0x82.
  const std::string rows16("\x10\x42\0\0\0\0\xff\x7f", 8), rows565("\x10\x84\0\0\0\0\xff\xff", 8);
  const Pixels grays{0, 0, 0, 255, 255, 255, 132, 132, 132, 0, 0, 0},
      grays565{0, 0, 0, 255, 255, 255, 132, 130, 132, 0, 0, 0};
  CHECK(DecodeImage(SmallBmp{.bits = 16, .rows = rows16}.bytes())->pixels == grays);
  CHECK(DecodeImage(SmallBmp{.bits = 16,
                             .compression = 3,
                             .extra = Masks({0xf800, 0x7e0, 0x1f}),
                             .rows = rows565}
                        .bytes())
            ->pixels == grays565);
  const std::string rows32("\1\2\3\0\4\5\6\0\7\x8\x9\0\xa\xb\xc\0", 16);
  const Pixels numbers{9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4};
  CHECK(DecodeImage(SmallBmp{.bits = 32, .rows = rows32}.bytes())->pixels == numbers);
  CHECK(DecodeImage(SmallBmp{.bits = 32,
                             .compression = 3,
                             .extra = Masks({0xff0000, 0xff00, 0xff}),
                             .rows = rows32}
                        .bytes())
            ->pixels == numbers);
  // The fourth byte of the plain header is reserved, whatever it holds.
  for (const char reserved : {'\x01', '\x80', '\xff'}) {
    std::string some = rows32;
    some[3] = reserved;
    CHECK(DecodeImage(SmallBmp{.bits = 32, .rows = some}.bytes())->pixels == numbers);
  }
}

TEST_CASE("a BMP with an inconsistent header is rejected") {
  const std::string rows(16, '\0'), palette(8, '\0');
  const auto why = [](const SmallBmp& bmp) { return WhyNot(bmp.bytes()); };
  REQUIRE(DecodeImage(SmallBmp{.rows = rows}.bytes()).has_value());
  CHECK(why({.bits = 8, .colours = 257, .extra = palette, .rows = rows}) ==
        "damaged or unsupported BMP: a palette of 257 colours for 8 bits per pixel");
  CHECK(why({.bits = 8, .rows = rows}) == "damaged or unsupported BMP: no palette");
  CHECK(why({.bits = 24, .compression = 1, .extra = palette, .rows = rows}) ==
        "damaged or unsupported BMP: compression 1 of 24 bits per pixel");
  CHECK(why({.compression = 0xff000000, .rows = rows}) ==
        "damaged or unsupported BMP: compression 4278190080 of 24 bits per pixel");
  CHECK(why({.bits = 2, .rows = rows}) == "damaged or unsupported BMP: 2 bits per pixel");
  CHECK(why({.planes = 3, .rows = rows}) == "damaged or unsupported BMP: 3 planes");
  CHECK(why({.bits = 32, .compression = 3, .rows = rows}) ==
        "damaged or unsupported BMP: the pixels begin within the header");
  for (const std::string& masks : {Masks({0, 0, 0}), Masks({0xf800, 0x7c0, 0x1f}),
                                   Masks({0xf800, 0x7e0, 0x3f}), Masks({0x1f0000, 0x7e0, 0x1f})}) {
    CHECK(Has(why({.bits = 16, .compression = 3, .extra = masks, .rows = rows}), "channel masks"));
  }
  CHECK(Has(
      why({.bits = 32, .compression = 3, .extra = Masks({0xff0000, 0xff00, 0x7f}), .rows = rows}),
      "channel masks"));
  std::string odd = SmallBmp{.rows = rows}.bytes();
  odd[14] = 41;
  CHECK(WhyNot(odd) == "damaged or unsupported BMP: a header of 41 bytes");
}

TEST_CASE("PNG and BMP round-trip bit for bit") {
  for (const int channels : {1, 3}) {
    for (const auto& [height, width] : {std::pair{1, 1}, std::pair{5, 7}, std::pair{64, 33}}) {
      const Image image = Pattern(height, width, channels);
      const auto decoded = DecodeImage(EncodePng(image));
      REQUIRE(decoded.has_value());
      CHECK(decoded->channels == channels);
      CHECK(decoded->pixels == image.pixels);
      if (channels == 3) {
        CHECK(DecodeImage(Bmp(image))->pixels == image.pixels);
        CHECK(DecodeImage(Bmp(image, true))->pixels == image.pixels);
      }
    }
  }
}

TEST_CASE("the last of two or four channels is written as alpha") {
  for (const int channels : {2, 4}) {
    Image image = Pattern(2, 3, channels);
    const auto step = static_cast<size_t>(channels);
    for (size_t i = step - 1; i < image.pixels.size(); i += step)
      image.pixels[i] = i < image.pixels.size() / 2 ? 255 : 0;  // opaque, then transparent
    const auto decoded = DecodeImage(EncodePng(image));
    REQUIRE(decoded.has_value());
    CHECK(decoded->channels == channels - 1);
    for (int c = 0; c < channels - 1; ++c) {
      CHECK(decoded->row(0)[c] == image.row(0)[c]);
      CHECK(decoded->row(1)[2 * (channels - 1) + c] == 255);  // on white
    }
  }
}

TEST_CASE("JPEG round-trips approximately, in colour and gray") {
  const Image colour = Gradient(48, 64, 3), gray = Gradient(31, 17, 1);
  const auto colour_back = DecodeImage(EncodeJpeg(colour, 98));
  const auto gray_back = DecodeImage(EncodeJpeg(gray, 98));
  CHECK(colour_back->height == 48);
  CHECK(colour_back->width == 64);
  CHECK(LargestDifference(*colour_back, colour) <= 8);
  CHECK(gray_back->channels == 1);
  CHECK(LargestDifference(*gray_back, gray) <= 4);
}

TEST_CASE("channels are converted as requested") {
  Image image;
  image.Resize(1, 3, 3);
  image.pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255};
  // .299, .587 and .114 of 255.
  CHECK(DecodeImage(EncodePng(image), {.channels = 1})->pixels ==
        std::vector<uint8_t>{76, 150, 29});
  image.Resize(1, 2, 1);
  image.pixels = {7, 200};
  CHECK(DecodeImage(EncodePng(image), {.channels = 3})->pixels ==
        std::vector<uint8_t>{7, 7, 7, 200, 200, 200});
  CHECK(DecodeImage(EncodeJpeg(Gradient(8, 8, 3)), {.channels = 1})->channels == 1);
  CHECK(DecodeImage(EncodeJpeg(Gradient(8, 8, 1)), {.channels = 3})->channels == 3);
}

TEST_CASE("alpha is composed over white, 16 bits become 8, palettes are expanded") {
  const std::string rgba{'\0', 100,  '\0', '\0', '\xff', 100,   '\0',
                         '\0', '\0', 100,  '\0', '\0',   '\x80'};
  CHECK(DecodeImage(Png(3, 1, 8, 6, rgba))->pixels ==
        std::vector<uint8_t>{100, 0, 0, 255, 255, 255, 177, 127, 127});
  const std::string gray16{'\0', '\x12', '\xff', '\xfe', '\x01'};
  CHECK(DecodeImage(Png(2, 1, 16, 0, gray16))->pixels == std::vector<uint8_t>{0x12, 0xfe});
  const std::string gray_alpha{'\0', 10, '\0'};
  CHECK(DecodeImage(Png(1, 1, 8, 4, gray_alpha))->pixels == std::vector<uint8_t>{255});
}

TEST_CASE("a CMYK JPEG becomes RGB") {
  const std::vector<uint8_t> inks(16 * 16 * 4, 255);  // no ink, as Adobe stores it: white
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  tjhandle handle = tjInitCompress();
  REQUIRE(tjCompress2(handle, inks.data(), 16, 0, 16, TJPF_CMYK, &buffer, &size, TJSAMP_444, 95,
                      0) == 0);
  const auto image = DecodeImage(std::string(reinterpret_cast<char*>(buffer), size));
  tjFree(buffer);
  tjDestroy(handle);
  REQUIRE(image.has_value());
  CHECK(image->channels == 3);
  CHECK(*std::min_element(image->pixels.begin(), image->pixels.end()) >= 250);
}

TEST_CASE("EXIF orientation is applied") {
  // Stored: a bright quarter at top left of a 16x32 image. Where it must appear for each
  // orientation (EXIF 2.3, figure of tag 0x0112).
  Image stored;
  stored.Resize(16, 32, 1);
  for (int y = 0; y < 8; ++y) std::fill_n(stored.row(y), 16, 255);
  const std::string jpeg = EncodeJpeg(stored, 100);
  const struct {
    int orientation, height, width;
    bool bottom, right;
  } cases[] = {{1, 16, 32, false, false}, {2, 16, 32, false, true},  {3, 16, 32, true, true},
               {4, 16, 32, true, false},  {5, 32, 16, false, false}, {6, 32, 16, false, true},
               {7, 32, 16, true, true},   {8, 32, 16, true, false}};
  for (const auto& c : cases) {
    for (const bool big_endian : {false, true}) {
      CAPTURE(c.orientation);
      const std::string bytes = WithOrientation(jpeg, c.orientation, big_endian);
      const auto info = ProbeImage(bytes);
      const auto image = DecodeImage(bytes);
      REQUIRE(image.has_value());
      CHECK(info->height == c.height);
      CHECK(image->height == c.height);
      CHECK(image->width == c.width);
      for (const bool bottom : {false, true}) {
        for (const bool right : {false, true}) {
          const int value = image->row(bottom ? c.height - 4 : 4)[right ? c.width - 4 : 4];
          CHECK((value > 128) == (bottom == c.bottom && right == c.right));
        }
      }
    }
  }
  CHECK(ProbeImage(WithOrientation(jpeg, 9, true))->orientation == 1);
}

TEST_CASE("the exact orientation of every pixel") {
  // 2x3 stored image with pixels 0 .. 5, far apart in value so that JPEG keeps them apart: blocks
  // of 8x8.
  Image stored;
  stored.Resize(16, 24, 1);
  for (int y = 0; y < 16; ++y) {
    for (int x = 0; x < 24; ++x) stored.row(y)[x] = static_cast<uint8_t>(40 * (y / 8 * 3 + x / 8));
  }
  const std::string jpeg = EncodeJpeg(stored, 100);
  const std::vector<std::vector<int>> shown = {
      {0, 1, 2, 3, 4, 5}, {2, 1, 0, 5, 4, 3}, {5, 4, 3, 2, 1, 0}, {3, 4, 5, 0, 1, 2},
      {0, 3, 1, 4, 2, 5}, {3, 0, 4, 1, 5, 2}, {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto image = DecodeImage(WithOrientation(jpeg, orientation, false));
    std::vector<int> blocks;
    for (int y = 4; y < image->height; y += 8) {
      for (int x = 4; x < image->width; x += 8) blocks.push_back((image->row(y)[x] + 20) / 40);
    }
    CAPTURE(orientation);
    CHECK(blocks == shown[static_cast<size_t>(orientation - 1)]);
  }
}

TEST_CASE("a JPEG is reduced while decoding if allowed") {
  const std::string jpeg = EncodeJpeg(Gradient(120, 80, 3));
  DecodeOptions options{.exact = false, .part = [](int height, int width) {
                          return DecodeOptions::Part{{0, 0, height, width}, 31.0 / height};
                        }};
  // 1/2 is the smallest step that is not below 31/120.
  CHECK(DecodeImage(jpeg, options)->height == 60);
  options.exact = true;
  CHECK(DecodeImage(jpeg, options)->height == 120);
}

TEST_CASE("a file that is not an image is rejected with a reason") {
  CHECK(WhyNot("") == "the file is empty");
  CHECK(WhyNot("hello\nworld, this is text") ==
        "not a JPEG, PNG, BMP, TGA, PNM, GIF, WebP or TIFF (begins with 'hello\\x0aworld,')");
  const auto other = [](const std::string& bytes) {
    const std::string why = WhyNot(bytes);
    return why.substr(0, why.find(" image, which is not supported; convert it to JPEG or PNG"));
  };
  const std::string size("\0\0\0\x18", 4);
  CHECK(other(size + "ftypheic") == "a HEIC");
  CHECK(other(size + "ftypmif1more") == "a HEIC");
  CHECK(other(size + "ftypavif") == "an AVIF");
  CHECK(Has(WhyNot(size + "ftypisom"), "not a JPEG, PNG, BMP, TGA, PNM, GIF, WebP or TIFF"));
  CHECK(Has(WhyNot("GIF8"), "not a JPEG, PNG, BMP, TGA, PNM, GIF, WebP or TIFF"));
  CHECK(Has(WhyNot("\xff\xd8"), "damaged or unsupported JPEG"));
  CHECK(Has(WhyNot("BM"), "damaged or unsupported BMP"));
  CHECK(Has(WhyNot("\x89PNG\r\n\x1a\n"), "damaged or unsupported PNG"));
  const std::string jpeg = EncodeJpeg(Pattern(64, 64, 3)), png = EncodePng(Pattern(64, 64, 3)),
                    bmp = Bmp(Pattern(9, 9, 3));
  CHECK(Has(WhyNot(jpeg.substr(0, jpeg.size() / 2)), "Premature end of JPEG file"));
  CHECK(Has(WhyNot(png.substr(0, png.size() / 2)), "the file ends early"));
  CHECK(Has(WhyNot(bmp.substr(0, bmp.size() - 5)), "the file ends early"));
  std::string turned = png;
  turned[turned.size() / 2] ^= 1;
  CHECK(Has(WhyNot(turned), "checksum"));
}

TEST_CASE("every truncated file is rejected, none crashes") {
  const Image image = Pattern(16, 16, 3);
  for (const std::string& bytes : {EncodeJpeg(image), EncodePng(image), Bmp(image)}) {
    for (size_t size = 0; size + 2 < bytes.size(); size += 1 + size / 64)
      CHECK_FALSE(DecodeImage(bytes.substr(0, size)).has_value());
  }
}

// TurboJPEG reports no size and no error for a JPEG that ends in its header, and the same for the
// good file after it; decoding to size 0 then wrote the whole image past the end of the buffer.
TEST_CASE("a truncated file does no harm to a decoder used before") {
  const std::string small = EncodeJpeg(Pattern(8, 8, 3)), large = EncodeJpeg(Pattern(64, 48, 3));
  ImageDecoder decoder;
  Image image;
  for (size_t size = 2; size < large.size(); size += 3) {
    REQUIRE_FALSE(decoder.Decode(small, {}, &image).has_value());
    REQUIRE(image.pixels.size() == 192);
    CHECK(decoder.Decode(large.substr(0, size), {}, &image).has_value());
  }
}

TEST_CASE("a huge header is rejected before memory is allocated") {
  const std::string png = Png(60000, 60000, 8, 2, "");
  CHECK(WhyNot(png) == "60000x60000 pixels are more than the limit of 100000000");
  CHECK(WhyNot(Png(16777216, 1, 8, 0, "")) ==
        "16777216x1 pixels: the longer edge is more than the limit of 65535");
  CHECK(WhyNot(EncodeJpeg(Pattern(20, 20, 3)), {.max_pixels = 399}) ==
        "20x20 pixels are more than the limit of 399");
}
