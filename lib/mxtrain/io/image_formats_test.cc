// SPDX-License-Identifier: Apache-2.0
// BMP, TGA and PNM, written here by their specifications, and GIF and WebP, written by their
// libraries. tests/reference/pillow_pixels.py compares many more forms with Pillow.
#include "mxtrain/io/image_formats.h"

#include <doctest/doctest.h>
#include <gif_lib.h>
#include <webp/encode.h>

#include <array>
#include <cmath>
#include <numeric>
#include <thread>

#include "mxtrain/base/format.h"
#include "tests/support/image_bytes.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::io;

std::string Little(uint32_t value, int size) {
  return Number(value, size, false);
}

std::string BytesOf(const Image& image) {
  return {reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()};
}

// Red and blue exchanged, as BMP and TGA store them.
Image Exchanged(Image image) {
  const auto channels = static_cast<size_t>(image.channels);
  for (size_t i = 0; i < image.pixels.size(); i += channels)
    std::swap(image.pixels[i], image.pixels[i + 2]);
  return image;
}

TEST_CASE("the endings of images, in one table") {
  CHECK(ImageFormatNames() == "JPEG, PNG, BMP, TGA, PNM, GIF, WebP or TIFF");
  for (const ImageFormatInfo& info : ImageFormats()) {
    CHECK(&info == &ImageFormats()[static_cast<size_t>(info.format)]);
    for (const std::string_view ending : info.endings) {
      CHECK(HasImageEnding("a.b/photo" + std::string(ending)));
      CHECK(HasEndingOf(info.format, "photo" + std::string(ending)));
      CHECK_FALSE(HasOtherImageEnding("photo" + std::string(ending)));
    }
  }
  CHECK(HasImageEnding("PHOTO.JPG"));
  CHECK_FALSE(HasEndingOf(ImageFormat::kPng, "photo.jpg"));
  for (const char* name : {"notes.txt", "jpg", ".jpg", "photo.heic", "photo.jpg.txt", ""})
    CHECK_FALSE(HasImageEnding(name));
  CHECK(HasOtherImageEnding("photo.HEIC"));
}

// stb_image reads four colours less than an OS/2 palette has, and no runs.
TEST_CASE("a BMP with an OS/2 header and a full palette, and with runs") {
  std::string palette, wide;
  for (uint32_t i = 0; i < 256; ++i) {
    palette += Little(i | (255 - i) << 8 | (i ^ 0x55) << 16, 3);
    wide += Little(i | (255 - i) << 8 | (i ^ 0x55) << 16, 4);
  }
  const auto colour = [](unsigned i) {
    return std::array{static_cast<uint8_t>(i ^ 0x55), static_cast<uint8_t>(255 - i),
                      static_cast<uint8_t>(i)};
  };
  const auto image = [&](const std::array<unsigned, 4>& indices) {
    Image wanted;
    wanted.Resize(2, 2, 3);
    for (size_t i = 0; i < 4; ++i)
      std::copy_n(colour(indices[i]).data(), 3, wanted.pixels.data() + 3 * i);
    return wanted;
  };
  const std::string rows("\xff\xfe\0\0\xfc\1\0\0", 8);  // from the bottom
  CheckPixels(SmallBmp{.bits = 8, .header = 12, .extra = palette, .rows = rows}.bytes(),
              image({252, 1, 255, 254}));
  const auto runs8 = [&](const std::string& packed) {
    return SmallBmp{.bits = 8, .compression = 1, .extra = wide, .rows = packed}.bytes();
  };
  // Runs and the end of the image; values as they are; a step over pixels, which are 0.
  CheckPixels(runs8(std::string("\2\7\0\0\1\3\1\4\0\1", 10)), image({3, 4, 7, 7}));
  CheckPixels(runs8(std::string("\0\3\1\2\3\0\0\0\2\5\0\1", 12)), image({5, 5, 1, 2}));
  CheckPixels(runs8(std::string("\1\6\0\2\0\1\1\5\0\1", 10)), image({0, 5, 6, 0}));
  CheckPixels(runs8(std::string("\5\7\0\0\2\4", 6)), image({4, 4, 7, 7}));  // cut off at the row
  CHECK(Has(WhyNot(runs8(std::string("\2\7\0\0\1\3\0\1", 8))), "the file ends early"));
  CHECK(Has(WhyNot(runs8(std::string("\2\7\0\0\0\7\1", 7))), "the file ends early"));
  CHECK(Has(WhyNot(runs8("")), "the file ends early"));
  const std::string runs4 = SmallBmp{.bits = 4,
                                     .compression = 2,
                                     .colours = 16,
                                     .extra = wide.substr(0, 64),
                                     .rows = std::string("\2\x73\0\0\0\4\x12\x30\0\1", 10)}
                                .bytes();
  CheckPixels(runs4, image({1, 2, 7, 3}));
}

struct Tga {
  uint32_t type = 2, bits = 24, descriptor = 0x20;
  uint32_t first_colour = 0, colours = 0, colour_bits = 0;
  std::string comment = {}, palette = {};
  std::string bytes(int height, int width, const std::string& rows) const {
    return Little(static_cast<uint32_t>(comment.size()), 1) + Little(colours > 0 ? 1 : 0, 1) +
           Little(type, 1) + Little(first_colour, 2) + Little(colours, 2) + Little(colour_bits, 1) +
           Little(0, 4) + Little(static_cast<uint32_t>(width), 2) +
           Little(static_cast<uint32_t>(height), 2) + Little(bits, 1) + Little(descriptor, 1) +
           comment + palette + rows;
  }
};

// Pixels in packets of one row: runs where `repeat`, else as they are.
std::string InRuns(const Image& image, bool repeat) {
  std::string packed;
  const auto step = static_cast<size_t>(image.channels);
  for (int y = 0; y < image.height; ++y) {
    const std::string row(reinterpret_cast<const char*>(image.row(y)),
                          step * static_cast<size_t>(image.width));
    if (!repeat) packed += static_cast<char>(image.width - 1) + row;
    for (size_t x = 0; repeat && x < row.size(); x += step) packed += '\x80' + row.substr(x, step);
  }
  return packed;
}

TEST_CASE("a TGA in each of its forms") {
  const Image rgb = Pattern(5, 7, 3), rgba = Pattern(5, 7, 4), gray = Pattern(5, 7, 1),
              gray_alpha = Pattern(5, 7, 2);
  for (const bool down : {false, true}) {
    for (const bool right : {false, true}) {
      const uint32_t descriptor = (down ? 0x20u : 0u) | (right ? 0x10u : 0u);
      const auto rows = [&](const Image& image) { return BytesOf(Flipped(image, !down, right)); };
      const Tga colour{.descriptor = descriptor, .comment = "a comment"};
      CheckPixels(colour.bytes(5, 7, rows(Exchanged(rgb))), rgb);
      CheckPixels(Tga{.bits = 32, .descriptor = descriptor | 8}.bytes(5, 7, rows(Exchanged(rgba))),
                  OverWhite(rgba), 1);
      CheckPixels(Tga{.type = 3, .bits = 8, .descriptor = descriptor}.bytes(5, 7, rows(gray)),
                  gray);
      CheckPixels(
          Tga{.type = 3, .bits = 16, .descriptor = descriptor}.bytes(5, 7, rows(gray_alpha)),
          OverWhite(gray_alpha), 1);
    }
  }
  for (const bool repeat : {false, true}) {
    CheckPixels(Tga{.type = 10}.bytes(5, 7, InRuns(Exchanged(rgb), repeat)), rgb);
    CheckPixels(Tga{.type = 10, .bits = 32}.bytes(5, 7, InRuns(Exchanged(rgba), repeat)),
                OverWhite(rgba), 1);
    CheckPixels(Tga{.type = 11, .bits = 8}.bytes(5, 7, InRuns(gray, repeat)), gray);
  }
  Image bits;
  bits.Resize(2, 9, 1);
  bits.pixels = {255, 0, 255, 0, 0, 0, 0, 255, 255, 0, 255, 0, 0, 0, 0, 0, 0, 0};
  CheckPixels(Tga{.type = 3, .bits = 1}.bytes(2, 9, "\xa1\x80\x40" + std::string(1, '\0')), bits);
  // 5 bits each, the highest left over.
  Image deep;
  deep.Resize(1, 2, 3);
  deep.pixels = {255, 0, 0, 0, 131, 255};
  CheckPixels(Tga{.bits = 16}.bytes(1, 2, Little(0xfc00, 2) + Little(0x021f, 2)), deep, 1);
}

// stb_image takes the number of the first colour for a number of bytes.
TEST_CASE("a TGA whose palette does not begin at 0") {
  const Tga tga{.type = 1,
                .bits = 8,
                .first_colour = 3,
                .colours = 2,
                .colour_bits = 24,
                .palette = "\1\2\3\4\5\6"};
  Image wanted;
  wanted.Resize(1, 4, 3);
  wanted.pixels = {3, 2, 1, 6, 5, 4, 0, 0, 0, 0, 0, 0};
  CheckPixels(tga.bytes(1, 4, std::string("\3\4\0\5", 4)), wanted);
}

TEST_CASE("a TGA that lacks pixels, or whose header makes no sense, is refused") {
  const Image rgb = Pattern(5, 7, 3);
  const std::string plain = Tga{}.bytes(5, 7, BytesOf(rgb)),
                    runs = Tga{.type = 10}.bytes(5, 7, InRuns(rgb, true));
  CheckCuts(plain, plain.size());
  CheckCuts(runs, runs.size());
  CHECK(Has(WhyNot(plain.substr(0, 40)), "damaged or unsupported TGA: the file ends early"));
  // A run over the end of a row.
  CHECK(Has(WhyNot(Tga{.type = 11, .bits = 8}.bytes(2, 2, "\x83\7")), "continues in the next row"));
  for (const Tga& odd : {Tga{.type = 4}, Tga{.bits = 15}, Tga{.bits = 8}, Tga{.type = 1, .bits = 8},
                         Tga{.type = 3, .bits = 24}, Tga{.descriptor = 0xc0}}) {
    CHECK(Has(WhyNot(odd.bytes(5, 7, BytesOf(rgb))), "not a JPEG"));
  }
  CHECK(Has(WhyNot(Tga{}.bytes(0, 7, BytesOf(rgb))), "not a JPEG"));
  CHECK(Has(WhyNot(Tga{}.bytes(65535, 65535, "")), "more than the limit"));
}

TEST_CASE("a PNM in each of its forms, with any largest value") {
  const Image rgb = Pattern(5, 7, 3), gray = Pattern(5, 7, 1);
  CheckPixels("P6\n7 5\n255\n" + BytesOf(rgb), rgb);
  CheckPixels("P5 # a comment\n#another\r7\t5 255 " + BytesOf(gray), gray);
  for (const int most : {1, 15, 100, 255, 256, 4095, 65535}) {
    Image wanted = gray;
    std::string text, binary;
    for (size_t i = 0; i < gray.pixels.size(); ++i) {
      const int sample = gray.pixels[i] * most / 255;
      wanted.pixels[i] = static_cast<uint8_t>(std::lround(sample * 255.0 / most));
      text += std::to_string(sample) + (i % 3 == 0 ? "\n" : "  ");
      binary += Number(static_cast<uint32_t>(sample), most > 255 ? 2 : 1, true);
    }
    CheckPixels(format("P2 7 5 {}\n{}", most, text), wanted);
    CheckPixels(format("P5 7 5 {}\n{}", most, binary), wanted);
    const std::string colour = format("P3 1 1 {0} {0} 0 {0}", most);
    CHECK(Decoded(colour).pixels == std::vector<uint8_t>{255, 0, 255});
  }
  Image bits;
  bits.Resize(2, 9, 1);
  bits.pixels = {0, 255, 0, 255, 255, 255, 255, 0, 0, 255, 0, 255, 255, 255, 255, 255, 255, 255};
  CheckPixels("P4 9 2\n\xa1\x80\x40" + std::string(1, '\0'), bits);
  CheckPixels("P1 9 2\n101000011\n0 1 0 0 0 0 0 0 0", bits);
}

TEST_CASE("a PNM that lacks samples or says nothing usable is refused") {
  const std::string binary = "P6 7 5 255\n" + BytesOf(Pattern(5, 7, 3)), text = "P2 2 2 9 1 2 3 4";
  CheckCuts(binary, binary.size());
  CheckCuts(text, text.size());
  for (const char* bytes :
       {"P5 0 5 255\n", "P5 5 0 255\n", "P5 5 5 0\n", "P5 5 5 65536\n", "P5 -5 5 255\n",
        "P5 x 5 255\n", "P2 1 1 9 10", "P2 1 1 9 x", "P1 2 1 12", "P5 1 1 255"}) {
    CAPTURE(bytes);
    CHECK(Has(WhyNot(bytes), "damaged or unsupported PNM"));
  }
  CHECK(Has(WhyNot("P5 99999 99999 255\n"), "more than the limit"));
  CHECK(Has(WhyNot("P7 1 1 255\n1"), "not a JPEG"));
}

// A GIF by giflib: `images`: indices of 0 .. 15, each placed at (2, 1) on a canvas.
struct Gif {
  int height = 9, width = 11, canvas_height = 12, canvas_width = 15, transparent = -1;
  bool interlaced = false, local = false, more = false;

  static GifColorType Colour(int i) {
    return {static_cast<GifByteType>(16 * i), static_cast<GifByteType>(255 - 3 * i),
            static_cast<GifByteType>(i * i)};
  }
  static int Index(int y, int x) { return (y * 5 + x * x) % 16; }

  std::string bytes() const {
    std::string out;
    int code = 0;
    const auto write = [](GifFileType* gif, const GifByteType* from, int size) {
      static_cast<std::string*>(gif->UserData)
          ->append(reinterpret_cast<const char*>(from), static_cast<size_t>(size));
      return size;
    };
    GifFileType* gif = EGifOpen(&out, write, &code);
    REQUIRE(gif);
    std::array<GifColorType, 16> colours{};
    for (int i = 0; i < 16; ++i) colours[static_cast<size_t>(i)] = Colour(i);
    ColorMapObject* map = GifMakeMapObject(16, colours.data());
    EGifSetGifVersion(gif, true);
    REQUIRE(EGifPutScreenDesc(gif, canvas_width, canvas_height, 8, 0, local ? nullptr : map) ==
            GIF_OK);
    REQUIRE(EGifPutComment(gif, "a comment") == GIF_OK);
    for (int image = 0; image < (more ? 2 : 1); ++image) {
      if (transparent >= 0) {
        const GraphicsControlBlock control{0, false, 0, transparent};
        GifByteType block[4];
        EGifGCBToExtension(&control, block);
        REQUIRE(EGifPutExtension(gif, GRAPHICS_EXT_FUNC_CODE, 4, block) == GIF_OK);
      }
      REQUIRE(EGifPutImageDesc(gif, 2, 1, width, height, interlaced, local ? map : nullptr) ==
              GIF_OK);
      std::vector<int> order;
      for (const auto& [first, step] : {std::pair{0, 8}, {4, 8}, {2, 4}, {1, 2}}) {
        for (int y = first; interlaced && y < height; y += step) order.push_back(y);
      }
      if (!interlaced) order.resize(static_cast<size_t>(height));
      if (!interlaced) std::iota(order.begin(), order.end(), 0);
      for (const int y : order) {
        std::vector<GifPixelType> row;
        for (int x = 0; x < width; ++x)
          row.push_back(static_cast<GifPixelType>(image == 0 ? Index(y, x) : 0));
        REQUIRE(EGifPutLine(gif, row.data(), width) == GIF_OK);
      }
    }
    EGifCloseFile(gif, nullptr);
    GifFreeMapObject(map);
    return out;
  }

  Image wanted() const {
    Image image;
    image.Resize(std::max(canvas_height, height + 1), std::max(canvas_width, width + 2), 3);
    for (int y = 0; y < image.height; ++y) {
      for (int x = 0; x < image.width; ++x) {
        const bool inside = y >= 1 && y < height + 1 && x >= 2 && x < width + 2;
        const int index = inside ? Index(y - 1, x - 2) : std::max(0, transparent);
        const GifColorType c = index == transparent ? GifColorType{255, 255, 255} : Colour(index);
        const uint8_t colour[] = {c.Red, c.Green, c.Blue};
        std::copy_n(colour, 3, image.row(y) + 3 * x);
      }
    }
    return image;
  }
};

TEST_CASE("the first image of a GIF, on its canvas") {
  for (const bool interlaced : {false, true}) {
    for (const bool local : {false, true}) {
      for (const int transparent : {-1, 0, 7}) {
        const Gif gif{.transparent = transparent, .interlaced = interlaced, .local = local};
        CheckPixels(gif.bytes(), gif.wanted());
      }
    }
  }
  const Gif large{.canvas_height = 1, .canvas_width = 1}, several{.more = true};
  CheckPixels(large.bytes(), large.wanted());
  CheckPixels(several.bytes(), several.wanted());
  CHECK(ProbeImage(large.bytes())->width == 13);
}

TEST_CASE("a GIF that lacks pixels, or whose codes mean nothing, is refused") {
  const std::string bytes = Gif{.height = 40, .width = 40}.bytes();
  CheckCuts(bytes, bytes.size() - 2);  // without the end of its blocks
  // Four gray pixels: codes of 3 bits from the lowest on, of which 4 clears the table, 6 is the
  // first that is defined, and 5 ends.
  const auto coded = [](uint32_t codes) {
    return "GIF89a" + Little(2, 2) + Little(2, 2) + std::string(3, '\0') + "," + Little(0, 4) +
           Little(2, 2) + Little(2, 2) + std::string("\0\2\4", 3) + Little(codes, 4) +
           std::string("\0;", 2);
  };
  const auto packed = [](std::initializer_list<uint32_t> codes) {
    uint32_t bits = 0;
    int at = 0;
    for (const uint32_t code : codes) bits |= code << 3 * at++;
    return bits;
  };
  CHECK(Decoded(coded(packed({4, 1, 6, 2}))).pixels ==
        std::vector<uint8_t>{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2});
  for (const uint32_t codes : {packed({4, 1, 7, 2}), packed({4, 6, 1, 2}), packed({4, 1, 2, 5})})
    CHECK(Has(WhyNot(coded(codes)), "GIF: the compressed data are damaged"));
  CHECK(Has(WhyNot("GIF89a\1"), "damaged or unsupported GIF: the file ends early"));
  CHECK(Has(WhyNot("GIF89a" + std::string("\1\0\1\0\0\0\0;", 8)), "GIF: no image"));
  std::string huge = bytes;
  huge.replace(6, 4, "\xff\xff\xff\xff");
  CHECK(Has(WhyNot(huge), "65535x65535 pixels are more than the limit"));
}

std::string WebP(const Image& image, bool lossless) {
  uint8_t* bytes = nullptr;
  const int stride = image.width * image.channels;
  const auto* pixels = image.pixels.data();
  const size_t size =
      image.channels == 4
          ? (lossless ? WebPEncodeLosslessRGBA(pixels, image.width, image.height, stride, &bytes)
                      : WebPEncodeRGBA(pixels, image.width, image.height, stride, 95, &bytes))
      : lossless ? WebPEncodeLosslessRGB(pixels, image.width, image.height, stride, &bytes)
                 : WebPEncodeRGB(pixels, image.width, image.height, stride, 95, &bytes);
  REQUIRE(size > 0);
  std::string out(reinterpret_cast<const char*>(bytes), size);
  WebPFree(bytes);
  return out;
}

// Chunks in a file of the extended form; `flags`: 0x10 alpha, 0x08 EXIF, 0x02 animation.
std::string ExtendedWebP(int height, int width, uint32_t flags, const std::string& chunks) {
  const std::string body = "WEBPVP8X" + Little(10, 4) + Little(flags, 4) +
                           Little(static_cast<uint32_t>(width - 1), 3) +
                           Little(static_cast<uint32_t>(height - 1), 3) + chunks;
  return "RIFF" + Little(static_cast<uint32_t>(body.size()), 4) + body;
}

std::string Chunk(const std::string& name, const std::string& data) {
  return name + Little(static_cast<uint32_t>(data.size()), 4) + data +
         std::string(data.size() % 2, '\0');
}

TEST_CASE("a WebP, lossless and lossy, with and without alpha") {
  const Image rgb = Pattern(9, 13, 3), smooth = Gradient(40, 30, 3);
  Image rgba = Pattern(9, 13, 4);
  rgba.pixels[3] = 0;
  CheckPixels(WebP(rgb, true), rgb);
  CheckPixels(WebP(rgba, true), OverWhite(rgba), 1);
  CheckPixels(WebP(smooth, false), smooth, 12);
  CHECK(ProbeImage(WebP(rgba, true))->channels == 4);
  for (const bool lossless : {false, true}) {
    const std::string bytes = WebP(smooth, lossless);
    CheckCuts(bytes, bytes.size() - 1);
  }
  CHECK(Has(WhyNot(WebP(rgb, true).substr(0, 24)), "damaged or unsupported WebP: the file ends"));
}

TEST_CASE("the EXIF orientation of a WebP is applied, and of an animation the first frame shown") {
  const Image rgb = Pattern(9, 13, 3);
  const std::string still = WebP(rgb, true).substr(12);  // its chunk
  const std::string exif = WithOrientation("\xff\xd8", 3, false, 4).substr(12);
  CheckPixels(ExtendedWebP(9, 13, 0x08, still + Chunk("EXIF", exif)), Flipped(rgb, true, true));
  const auto frame = [&](uint32_t x, uint32_t y) {
    return Chunk("ANMF", Little(x / 2, 3) + Little(y / 2, 3) + Little(12, 3) + Little(8, 3) +
                             Little(100, 3) + Little(0, 1) + still);
  };
  const std::string animation =
      ExtendedWebP(20, 30, 0x02,
                   Chunk("ANIM", Little(0xff0000ff, 4) + Little(0, 2)) + frame(4, 2) + frame(0, 0));
  const Image shown = Decoded(animation);
  CHECK(shown.height == 20);
  CHECK(shown.width == 30);
  for (int y = 0; y < 20; ++y) {
    for (int x = 0; x < 30; ++x) {
      const bool inside = y >= 2 && y < 11 && x >= 4 && x < 17;
      for (int c = 0; c < 3; ++c)
        CHECK(int{shown.row(y)[3 * x + c]} == (inside ? rgb.row(y - 2)[3 * (x - 4) + c] : 255));
    }
  }
}

// Handlers of errors that threads share would be found here.
TEST_CASE("threads decode good and damaged files of every format at once") {
  const Image rgb = Pattern(24, 16, 3);
  std::vector<std::string> good = {EncodeJpeg(rgb),
                                   EncodePng(rgb),
                                   Tga{}.bytes(24, 16, BytesOf(rgb)),
                                   "P6 16 24 255\n" + BytesOf(rgb),
                                   Gif{}.bytes(),
                                   WebP(rgb, true)};
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      ImageDecoder decoder;
      Image image;
      for (size_t i = 0; i < 40 * good.size(); ++i) {
        const std::string& bytes = good[(i + t) % good.size()];
        if (decoder.Decode(bytes, {}, &image)) ++wrong[t];
        if (!decoder.Decode(bytes.substr(0, bytes.size() / 2), {}, &image)) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

}  // namespace
}  // namespace mxtrain::test
