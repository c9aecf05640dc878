// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/mask_image.h"

#include <charconv>

#include "mxtrain/base/error.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {
namespace {

// Of "#80ff00".
std::optional<uint32_t> ColourOf(std::string_view text) {
  uint32_t value = 0;
  if (text.size() != 7 || text[0] != '#') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + 7, value, 16);
  if (error != std::errc() || end != text.data() + 7) return std::nullopt;
  return value;
}

std::optional<int> NumberOf(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

uint32_t Packed(const uint8_t* rgb) {
  return uint32_t{rgb[0]} << 16 | uint32_t{rgb[1]} << 8 | rgb[2];
}

}  // namespace

MaskCode::MaskCode(int64_t classes, const std::vector<std::string>& colours,
                   const std::vector<std::string>& ignored) {
  if (classes > kNoClass || std::ssize(colours) > kNoClass)
    Throw(ErrorKind::kConfig, "masks have at most {} classes, not {}", kNoClass,
          std::max(classes, std::ssize(colours)));
  const bool counted = classes > 0 || !colours.empty();
  if (classes > 0 && !colours.empty() && std::ssize(colours) != classes) {
    Throw(ErrorKind::kConfig, "mask_colours has {} colours for {} classes", colours.size(),
          classes);
  }
  for (int k = 0; k < 256; ++k) {
    known_[static_cast<size_t>(k)] = !counted || k < classes || k == kNoClass;
    class_of_[static_cast<size_t>(k)] = static_cast<uint8_t>(k);
  }
  const auto add_colour = [this](const std::string& text, uint8_t value, const char* key) {
    const auto colour = ColourOf(text);
    if (!colour)
      Throw(ErrorKind::kConfig, "{} has '{}', which is no colour; write it as #rrggbb", key, text);
    if (!class_of_colour_.emplace(*colour, value).second)
      Throw(ErrorKind::kConfig, "{} has the colour {}, which has a meaning already", key, text);
  };
  for (size_t k = 0; k < colours.size(); ++k)
    add_colour(colours[k], static_cast<uint8_t>(k), "mask_colours");
  for (const std::string& text : ignored) {
    if (!colours.empty()) {
      add_colour(text, kNoClass, "mask_ignore");
      continue;
    }
    const auto number = NumberOf(text);
    if (!number || *number < 0 || *number > 255)
      Throw(ErrorKind::kConfig, "mask_ignore has '{}'; expected numbers from 0 to 255", text);
    if (*number < classes) {
      Throw(ErrorKind::kConfig, "mask_ignore has {}, which is one of the {} classes (from 0)", text,
            classes);
    }
    known_[static_cast<size_t>(*number)] = true;
    class_of_[static_cast<size_t>(*number)] = kNoClass;
  }
}

std::optional<Refusal> MaskCode::Decode(std::string_view bytes, ImageDecoder* decoder,
                                        Image* classes) const {
  const auto info = ProbeImage(bytes);
  if (!info) return info.error();
  if (info->format == ImageFormat::kJpeg || info->format == ImageFormat::kWebp) {
    return Refusal{format("a mask as {}, which does not keep the numbers of classes; use PNG",
                          NameOf(info->format))};
  }
  const bool colours = !class_of_colour_.empty();
  DecodeOptions options;
  options.as_stored = !colours;
  options.bits = colours ? 8 : 16;
  options.channels = colours ? 3 : 0;
  Image image;
  if (auto refusal = decoder->Decode(bytes, options, &image)) return refusal;
  if (colours) return FromColours(image, classes);
  if (auto refusal = FromNumbers(&image)) return refusal;
  *classes = std::move(image);
  return std::nullopt;
}

// Numbers of 16 bits, and gray stored as RGB, become gray of 8 bits.
std::optional<Refusal> MaskCode::FromNumbers(Image* image) const {
  const auto channels = static_cast<size_t>(image->channels);
  const size_t pixels = static_cast<size_t>(image->height) * static_cast<size_t>(image->width);
  const bool deep = image->is_deep();
  if (deep) image->pixels.resize(pixels);
  const auto place = [image](size_t i) {
    const auto width = static_cast<size_t>(image->width);
    return format("at ({}, {})", i % width, i / width);
  };
  for (size_t i = 0; i < pixels; ++i) {
    const auto value = [&](size_t c) -> unsigned {
      return deep ? image->deep[i * channels + c] : image->pixels[i * channels + c];
    };
    const unsigned number = value(0);
    for (size_t c = 1; c < channels; ++c) {
      if (value(c) == number) continue;
      return Refusal{
          format("the mask has colours ({}): say which class each is with mask_colours", place(i))};
    }
    if (number > 255 || !known_[number])
      return Refusal{format("the mask has {} {}, which is neither a class nor in mask_ignore",
                            number, place(i))};
    image->pixels[i] = class_of_[number];
  }
  image->Resize(image->height, image->width, 1);
  return std::nullopt;
}

std::optional<Refusal> MaskCode::FromColours(const Image& image, Image* classes) const {
  classes->Resize(image.height, image.width, 1);
  uint32_t last = 0;
  auto found = class_of_colour_.end();
  for (size_t i = 0; i < classes->pixels.size(); ++i) {
    const uint32_t colour = Packed(image.pixels.data() + 3 * i);
    if (found == class_of_colour_.end() || colour != last) {
      found = class_of_colour_.find(colour);
      if (found == class_of_colour_.end()) {
        const auto width = static_cast<size_t>(image.width);
        return Refusal{
            format("the mask has the colour #{:06x} at ({}, {}), which is neither in mask_colours "
                   "nor in mask_ignore",
                   colour, i % width, i / width)};
      }
      last = colour;
    }
    classes->pixels[i] = found->second;
  }
  return std::nullopt;
}

}  // namespace mxtrain::io
