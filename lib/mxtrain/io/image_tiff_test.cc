// SPDX-License-Identifier: Apache-2.0
// TIFF files written by libtiff. tests/reference/pillow_pixels.py compares many more with Pillow.
#include <doctest/doctest.h>
#include <tiffio.h>

#include <thread>

#include "mxtrain/base/file.h"
#include "tests/support/image_bytes.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::io;

using Numbers = std::initializer_list<uint16_t>;

// A TIFF by libtiff.
struct TiffForm {
  uint16_t photometric = PHOTOMETRIC_RGB, bits = 8, planes = PLANARCONFIG_CONTIG,
           compression = COMPRESSION_NONE, orientation = 1, extra = 0xffff;
  uint32_t tile = 0;  // edge; 0: strips
  std::string mode = "w";

  // Samples of 8 or 16 bits, interleaved.
  std::string bytes(int height, int width, int samples, const std::vector<uint16_t>& values) const {
    const TempDir dir;
    TIFF* tiff = TIFFOpen(dir.path("image.tif").c_str(), mode.c_str());
    REQUIRE(tiff);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, samples);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, bits);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, photometric);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, planes);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, compression);
    TIFFSetField(tiff, TIFFTAG_ORIENTATION, orientation);
    if (extra != 0xffff) TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &extra);
    if (photometric == PHOTOMETRIC_PALETTE) {
      std::vector<uint16_t> maps[3];
      for (uint16_t i = 0; i < 256; ++i) {
        maps[0].push_back(static_cast<uint16_t>(i << 8));
        maps[1].push_back(static_cast<uint16_t>((255 - i) << 8));
        maps[2].push_back(static_cast<uint16_t>((i ^ 0x55) << 8));
      }
      TIFFSetField(tiff, TIFFTAG_COLORMAP, maps[0].data(), maps[1].data(), maps[2].data());
    }
    if (tile > 0) {
      TIFFSetField(tiff, TIFFTAG_TILEWIDTH, tile);
      TIFFSetField(tiff, TIFFTAG_TILELENGTH, tile);
    } else {
      TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 4);
    }
    const bool apart = planes == PLANARCONFIG_SEPARATE;
    const int edge = static_cast<int>(tile);
    for (int plane = 0; plane < (apart ? samples : 1); ++plane) {
      // `count` pixels of row y from x on; beyond the image zeros.
      const auto part = [&](int y, int x, int count) {
        std::string out;
        for (int i = x; i < x + count; ++i) {
          for (int s = apart ? plane : 0; s < (apart ? plane + 1 : samples); ++s) {
            const auto at = static_cast<size_t>((y * width + i) * samples + s);
            const uint16_t value = y < height && i < width ? values[at] : uint16_t{0};
            out += bits == 8 ? std::string(1, static_cast<char>(value))
                             : std::string(reinterpret_cast<const char*>(&value), 2);
          }
        }
        return out;
      };
      for (int y = 0; edge == 0 && y < height; ++y) {
        std::string row = part(y, 0, width);
        REQUIRE(TIFFWriteScanline(tiff, row.data(), static_cast<uint32_t>(y),
                                  static_cast<uint16_t>(plane)) == 1);
      }
      for (int y = 0; edge > 0 && y < height; y += edge) {
        for (int x = 0; x < width; x += edge) {
          std::string data;
          for (int i = 0; i < edge; ++i) data += part(y + i, x, edge);
          REQUIRE(TIFFWriteTile(tiff, data.data(), static_cast<uint32_t>(x),
                                static_cast<uint32_t>(y), 0, static_cast<uint16_t>(plane)) > 0);
        }
      }
    }
    TIFFClose(tiff);
    return ReadFile(dir.path("image.tif"));
  }

  std::string bytes(const Image& image) const {
    std::vector<uint16_t> values(image.pixels.begin(), image.pixels.end());
    if (bits == 16) {
      for (uint16_t& value : values) value = static_cast<uint16_t>(value << 8 | (value ^ 0x9a));
    }
    return bytes(image.height, image.width, image.channels, values);
  }
};

TEST_CASE("a TIFF of 8 and 16 bits, in strips and tiles, in every order of bytes and planes") {
  const Image rgb = Pattern(37, 21, 3), gray = Pattern(37, 21, 1);
  for (const char* mode : {"wl", "wb", "w8"}) {
    for (const uint16_t bits : Numbers{8, 16}) {
      for (const uint16_t planes : Numbers{PLANARCONFIG_CONTIG, PLANARCONFIG_SEPARATE}) {
        for (const uint32_t tile : {0u, 16u}) {
          for (const uint16_t compression :
               Numbers{COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE,
                       COMPRESSION_PACKBITS}) {
            CheckPixels(TiffForm{.bits = bits,
                                 .planes = planes,
                                 .compression = compression,
                                 .tile = tile,
                                 .mode = mode}
                            .bytes(rgb),
                        rgb);
          }
        }
      }
      CheckPixels(
          TiffForm{.photometric = PHOTOMETRIC_MINISBLACK, .bits = bits, .mode = mode}.bytes(gray),
          gray);
    }
  }
  Image inverted = gray;
  for (uint8_t& value : inverted.pixels) value = static_cast<uint8_t>(255 - value);
  CheckPixels(TiffForm{.photometric = PHOTOMETRIC_MINISWHITE}.bytes(gray), inverted);
}

TEST_CASE("alpha, palettes and orientations of a TIFF") {
  const Image rgba = Pattern(9, 13, 4), gray = Pattern(9, 13, 1), rgb = Pattern(9, 13, 3);
  CheckPixels(TiffForm{.extra = EXTRASAMPLE_UNASSALPHA}.bytes(rgba), OverWhite(rgba), 1);
  Image premultiplied = rgba, without;
  without.Resize(9, 13, 3);
  for (size_t i = 0; i < rgba.pixels.size(); ++i) {
    const size_t alpha = i / 4 * 4 + 3;
    if (i != alpha) {
      premultiplied.pixels[i] =
          static_cast<uint8_t>((rgba.pixels[i] * rgba.pixels[alpha] + 127) / 255);
      without.pixels[i / 4 * 3 + i % 4] = rgba.pixels[i];
    }
  }
  CheckPixels(TiffForm{.extra = EXTRASAMPLE_ASSOCALPHA}.bytes(premultiplied), OverWhite(rgba), 1);
  CheckPixels(TiffForm{.extra = EXTRASAMPLE_UNSPECIFIED}.bytes(rgba), without);
  Image palette;
  palette.Resize(9, 13, 3);
  for (size_t i = 0; i < gray.pixels.size(); ++i) {
    palette.pixels[3 * i] = gray.pixels[i];
    palette.pixels[3 * i + 1] = static_cast<uint8_t>(255 - gray.pixels[i]);
    palette.pixels[3 * i + 2] = static_cast<uint8_t>(gray.pixels[i] ^ 0x55);
  }
  CheckPixels(TiffForm{.photometric = PHOTOMETRIC_PALETTE}.bytes(gray), palette);
  CheckPixels(TiffForm{.orientation = 2}.bytes(rgb), Flipped(rgb, false, true));
  CheckPixels(TiffForm{.orientation = 3}.bytes(rgb), Flipped(rgb, true, true));
  const std::string turned = TiffForm{.orientation = 6}.bytes(rgb);
  CHECK(ProbeImage(turned)->height == 13);
  CHECK(Decoded(turned).height == 13);
  CHECK(Decoded(turned).row(0)[0] == rgb.row(8)[0]);  // the lower left corner is shown upper left
}

TEST_CASE("a TIFF that libtiff converts: CMYK and JPEG") {
  Image inks;
  inks.Resize(2, 2, 4);
  inks.pixels = {0, 0, 0, 0, 255, 0, 0, 0, 0, 255, 0, 0, 0, 0, 0, 255};
  Image wanted;
  wanted.Resize(2, 2, 3);
  wanted.pixels = {255, 255, 255, 0, 255, 255, 255, 0, 255, 0, 0, 0};
  CheckPixels(TiffForm{.photometric = PHOTOMETRIC_SEPARATED}.bytes(inks), wanted);
  const Image smooth = Gradient(32, 48, 3);
  CheckPixels(TiffForm{.compression = COMPRESSION_JPEG, .tile = 16}.bytes(smooth), smooth, 12);
}

TEST_CASE("a TIFF that lacks pixels, or cannot be shown without a choice, is refused") {
  const Image rgb = Pattern(37, 21, 3);
  for (const uint16_t compression :
       Numbers{COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE}) {
    const std::string bytes = TiffForm{.compression = compression}.bytes(rgb);
    CheckCuts(bytes, bytes.size() - 1);
  }
  const Image many = Pattern(4, 4, 13);
  CHECK(
      Has(WhyNot(TiffForm{.photometric = PHOTOMETRIC_MINISBLACK}.bytes(many)), "TIFF: 13 samples"));
  // A palette that lies beyond the end: libtiff would take the indices for gray.
  std::string palette = TiffForm{.photometric = PHOTOMETRIC_PALETTE}.bytes(Pattern(9, 13, 1));
  const size_t entry = palette.find(std::string("\x40\x01\3\0\0\3\0\0", 8));
  REQUIRE(entry != std::string::npos);
  palette.replace(entry + 8, 4, std::string("\xff\xff\xff\0", 4));
  CHECK(Has(WhyNot(palette), "ColorMap"));
  // Tiles that would need gigabytes.
  std::string tiles = TiffForm{.tile = 16}.bytes(rgb);
  for (const char* tag : {"\x42\x01\3\0\1\0\0\0", "\x43\x01\3\0\1\0\0\0"}) {
    const size_t at = tiles.find(std::string(tag, 8));
    REQUIRE(at != std::string::npos);
    tiles.replace(at + 8, 2, "\xf0\xff");
  }
  CHECK(Has(WhyNot(tiles), "damaged or unsupported TIFF"));
}

// Each file has handlers of its own; libtiff's are global, and print.
TEST_CASE("threads read good and damaged TIFFs at once") {
  const std::string bytes = TiffForm{.compression = COMPRESSION_LZW}.bytes(Pattern(37, 21, 3));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 100; ++i) {
        if (!DecodeImage(bytes)) ++wrong[t];
        const auto cut = DecodeImage(bytes.substr(0, bytes.size() - 1 - (7 * i + t) % 200));
        if (cut || !Has(cut.error().reason, "damaged or unsupported TIFF")) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

}  // namespace
}  // namespace mxtrain::test
