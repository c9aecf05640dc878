// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/composition.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "mxtrain/base/format.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/base/text.h"

namespace mxtrain::io {
namespace {

// Composed letters, in pairs: each followed by the letter that has one mark less (Unicode Standard,
// UnicodeData.txt, canonical decompositions).
struct Mark {
  const char* mark;
  const char* letters;
};
constexpr Mark kMarks[] = {
    {"\u0300", "ÀAÈEÌIÒOÙUàaèeìiòoùuǸNǹnẀWẁwỲYỳyẦÂầâỀÊềêỒÔồôǛÜǜüẰĂằăỜƠờơỪƯừưЀЕѐеЍИѝи"},
    {"\u0301",
     "ÁAÉEÍIÓOÚUÝYáaéeíióoúuýyĆCćcĹLĺlŃNńnŔRŕrŚSśsŹZźzǴGǵgḰKḱkḾMḿmṔPṕpẂWẃwẤÂấâẾÊếêỐÔốôǗÜǘüẮĂắă"
     "ỚƠớơỨƯứưЃГѓгЌКќкΆΑΈΕΉΗΊΙΌΟΎΥΏΩάαέεήηίιόούυώωΐϊΰϋ"},
    {"\u0302", "ÂAÊEÎIÔOÛUâaêeîiôoûuĈCĉcĜGĝgĤHĥhĴJĵjŜSŝsŴWŵwŶYŷyẐZẑzẬẠậạỆẸệẹỘỌộọ"},
    {"\u0303", "ÃAÑNÕOãañnõoĨIĩiŨUũuẼEẽeỸYỹyṼVṽvẪÂẫâỄÊễêỖÔỗôẴĂẵăỠƠỡơỮƯữư"},
    {"\u0304", "ĀAāaĒEēeĪIīiŌOōoŪUūuȲYȳyǕÜǖüӢИӣиӮУӯу"},
    {"\u0306", "ĂAăaĔEĕeĞGğgĬIĭiŎOŏoŬUŭuЙИйиЎУўуӐАӑаӖЕӗеӁЖӂжẶẠặạ"},
    {"\u0307", "ĊCċcĖEėeĠGġgİIŻZżzȦAȧaȮOȯoḂBḃbḊDḋdḞFḟfḢHḣhṀMṁmṄNṅnṖPṗpṘRṙrṠSṡsṪTṫtẆWẇwẊXẋxẎYẏy"},
    {"\u0308", "ÄAËEÏIÖOÜUäaëeïiöoüuÿyŸYẄWẅwẌXẍxЁЕёеЇІїіӒАӓаӜЖӝжӞЗӟзӤИӥиӦОӧоӰУӱуΪΙΫΥϊιϋυ"},
    {"\u0309", "ẢAảaẺEẻeỈIỉiỎOỏoỦUủuỶYỷyẨÂẩâỂÊểêỔÔổôẲĂẳăỞƠởơỬƯửư"},
    {"\u030a", "ÅAåaŮUůu"},
    {"\u030b", "ŐOőoŰUűu"},
    {"\u030c", "ČCčcĎDďdĚEěeĽLľlŇNňnŘRřrŠSšsŤTťtŽZžzǍAǎaǏIǐiǑOǒoǓUǔuǦGǧgǨKǩkǙÜǚü"},
    {"\u031b", "ƠOơoƯUưu"},
    {"\u0323", "ẠAạaẸEẹeỊIịiỌOọoỤUụuỴYỵyỢƠợơỰƯựưḌDḍdḤHḥhḲKḳkḶLḷlṂMṃmṆNṇnṚRṛrṢSṣsṬTṭtẒZẓz"},
    {"\u0326", "ȘSșsȚTțt"},
    {"\u0327", "ÇCçcĢGģgĶKķkĻLļlŅNņnŖRŗrŞSşsŢTţt"},
    {"\u0328", "ĄAąaĘEęeĮIįiŲUųuǪOǫo"},
    {"\u3099",
     "がかぎきぐくげけごこざさじしずすぜせぞそだたぢちづつでてどとばはびひぶふべへぼほゔう"
     "ガカギキグクゲケゴコザサジシズスゼセゾソダタヂチヅツデテドトバハビヒブフベヘボホヴウ"},
    {"\u309a", "ぱはぴひぷふぺへぽほパハピヒプフペヘポホ"},
};

// The length in bytes of the character at `at`, of valid UTF-8.
size_t LengthAt(std::string_view text, size_t at) {
  const auto lead = static_cast<uint8_t>(text[at]);
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

// Of each composed letter: a letter and a mark.
const std::map<std::string_view, std::pair<std::string_view, std::string_view>>& Parts() {
  static const auto parts = [] {
    std::map<std::string_view, std::pair<std::string_view, std::string_view>> result;
    for (const auto& [mark, text] : kMarks) {
      const std::string_view letters = text;
      for (size_t at = 0; at < letters.size();) {
        const std::string_view composed = letters.substr(at, LengthAt(letters, at));
        at += composed.size();
        const std::string_view base = letters.substr(at, LengthAt(letters, at));
        at += base.size();
        result[composed] = {base, mark};
      }
    }
    return result;
  }();
  return parts;
}

std::string ThreeBytes(uint32_t code) {
  return {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

// A syllable of Hangul by its letters (The Unicode Standard, section 3.12); "" for any other.
std::string Letters(std::string_view character) {
  constexpr uint32_t kFirst = 0xac00, kSyllables = 11172, kVowels = 21, kFinals = 28;
  if (character.size() != 3) return "";
  const auto byte = [character](size_t i) { return static_cast<uint8_t>(character[i]); };
  const uint32_t code = (byte(0) & 0x0fu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
  if (code < kFirst || code >= kFirst + kSyllables) return "";
  const uint32_t index = code - kFirst, last = index % kFinals;
  return ThreeBytes(0x1100 + index / (kVowels * kFinals)) +
         ThreeBytes(0x1161 + index / kFinals % kVowels) + (last ? ThreeBytes(0x11a7 + last) : "");
}

void Append(std::string_view character, std::string* text) {
  if (const auto found = Parts().find(character); found != Parts().end()) {
    Append(found->second.first, text);
    *text += found->second.second;
    return;
  }
  const std::string letters = Letters(character);
  *text += letters.empty() ? character : letters;
}

}  // namespace

std::string Decomposed(std::string_view text) {
  if (!IsUtf8(text)) return std::string(text);
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, LengthAt(text, at));
    Append(character, &result);
    at += character.size();
  }
  return result;
}

std::string ComposedDifferently(const std::string& name, const std::vector<std::string>& known) {
  const std::string plain = Decomposed(name);
  const auto same = std::find_if(known.begin(), known.end(), [&](const std::string& other) {
    return other != name && Decomposed(other) == plain;
  });
  if (same == known.end()) return "";
  const bool apart = name == plain, other_apart = *same == plain;
  const auto how = [](bool is_apart) {
    return is_apart ? "letters and marks apart (Unicode NFD, as macOS writes names)"
                    : "as one character each (Unicode NFC)";
  };
  return format(
      "; it looks like '{}', but its accented letters are written {}, and there {}: write both in "
      "the same way (convmv -r -f utf8 -t utf8 --nfc --notest FOLDER renames files)",
      *same, how(apart), apart == other_apart ? "in another order" : how(other_apart));
}

std::string WhyNotAmong(const std::string& name, const std::vector<std::string>& known) {
  std::string why = ComposedDifferently(name, known);
  return why.empty() ? DidYouMean(name, known) : why;
}

}  // namespace mxtrain::io
