// SPDX-License-Identifier: Apache-2.0
#include "app/report/plot/visual_text.h"

#include <doctest/doctest.h>

namespace mxtrain::plot {

TEST_CASE("text from the right is turned and joined as python-bidi and arabic-reshaper do it") {
  // Made by their versions 0.6.12 and 3.1.0 for lines from the left.
  const std::pair<const char*, std::u32string> cases[] = {
      {"قبعة", U"\uFE94\uFECC\uFE92\uFED7"},
      {"true: قبعة", U"true: \uFE94\uFECC\uFE92\uFED7"},
      {"سلام 123 (دنیا)", U"\uFE8E\uFBFF\uFEE7\uFEA9) 123 \uFEE1\uFEFC\uFEB3)"},
      {"图片_صورة_x", U"图片_\uFE93\uFEAD\uFEEE\uFEBB_x"},
      {"שלום עולם!", U"םלוע םולש!"},
      {"الإسلام", U"\uFEE1\uFEFC\uFEB3\uFEF9\uFE8D"},
      {"لا", U"\uFEFB"}};
  for (const auto& [text, visual] : cases) {
    CAPTURE(text);
    CHECK(Utf8Of(VisualText(text)) == Utf8Of(visual));
  }
  // Marks are drawn after the letter on which they stand.
  CHECK(VisualText("كَتَبَ") == U"\uFE90\u064E\uFE98\u064E\uFEDB\u064E");
}

TEST_CASE("other text stays as it is, but for characters that are not seen") {
  for (const char* text : {"", "plain (1)", "żółw", "帽子 hat", "πρ"})
    CHECK(Utf8Of(VisualText(text)) == text);
  CHECK(VisualText("👒\uFE0F\u200D") == U"👒");
  CHECK(VisualText("a\xff\u00e9") == U"a\uFFFD\u00e9");
  CHECK(Utf8Of(CharactersOf("aé帽👒")) == "aé帽👒");
}

}  // namespace mxtrain::plot
