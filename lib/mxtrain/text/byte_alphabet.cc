// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/text/internal/byte_alphabet.h"

#include <array>

#include "mxtrain/text/internal/utf8.h"

namespace mxtrain::text {
namespace {

constexpr uint32_t kFirstShifted = 0x100;

constexpr bool IsVisibleByte(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr std::array<uint32_t, 256> MakeByteCharacters() {
  std::array<uint32_t, 256> characters{};
  uint32_t shifted = kFirstShifted;
  for (uint32_t byte = 0; byte < 256; ++byte)
    characters[byte] = IsVisibleByte(byte) ? byte : shifted++;
  return characters;
}
constexpr std::array<uint32_t, 256> kByteCharacters = MakeByteCharacters();
constexpr uint32_t kEndOfCharacters = kFirstShifted + 68;

std::array<int, kEndOfCharacters> MakeCharacterBytes() {
  std::array<int, kEndOfCharacters> bytes;
  bytes.fill(-1);
  for (int byte = 0; byte < 256; ++byte) bytes[kByteCharacters[static_cast<size_t>(byte)]] = byte;
  return bytes;
}

}  // namespace

uint32_t CharacterOfByte(unsigned char byte) {
  return kByteCharacters[byte];
}

std::string VisibleBytes(std::string_view bytes) {
  std::string token;
  for (const char byte : bytes)
    AppendCodePoint(CharacterOfByte(static_cast<unsigned char>(byte)), &token);
  return token;
}

std::optional<std::string> BytesOfVisible(std::string_view token) {
  static const std::array<int, kEndOfCharacters> bytes_of = MakeCharacterBytes();
  std::string bytes;
  bool good = true;
  ForEachCodePoint(token, [&](uint32_t c, std::string_view) {
    const int byte = c < kEndOfCharacters ? bytes_of[c] : -1;
    good = good && byte >= 0;
    bytes.push_back(static_cast<char>(byte));
  });
  if (!good) return std::nullopt;
  return bytes;
}

}  // namespace mxtrain::text
