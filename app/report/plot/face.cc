// SPDX-License-Identifier: Apache-2.0
#include "app/report/plot/face.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "app/report/plot/visual_text.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/mapped_file.h"
#include "mxtrain/base/mutex.h"

#define STB_TRUETYPE_IMPLEMENTATION
#define STBTT_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb_truetype.h>
#pragma GCC diagnostic pop

// The font file, under the linker's symbol names (app/CMakeLists.txt).
extern "C" const unsigned char _binary_DejaVuSans_ttf_start[];

namespace mxtrain::plot {

// A font, and the file in which it is unless it is the embedded one. Immutable.
class Face {
 public:
  Face(const unsigned char* bytes, int offset, std::optional<MappedFile> file = std::nullopt)
      : file_(std::move(file)), usable_(stbtt_InitFont(&info_, bytes, offset) != 0) {
    if (usable_) scale_ = static_cast<double>(stbtt_ScaleForMappingEmToPixels(&info_, 1));
  }

  bool usable() const { return usable_; }
  const stbtt_fontinfo* info() const { return &info_; }
  double scale() const { return scale_; }  // of the font's units
  int Find(char32_t character) const {
    return stbtt_FindGlyphIndex(&info_, static_cast<int>(character));
  }
  // Fonts of images have characters without outlines.
  bool Draws(char32_t character) const {
    const int index = Find(character);
    return index != 0 && !stbtt_IsGlyphEmpty(&info_, index);
  }

 private:
  const std::optional<MappedFile> file_;
  stbtt_fontinfo info_{};
  const bool usable_;
  double scale_ = 0;
};

namespace {

namespace fs = std::filesystem;

uint32_t BigEndian(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// Whether all tables of a font are within its file, which stb_truetype takes for granted.
bool IsWhole(std::string_view file, int offset) {
  if (offset < 0) return false;
  const auto begin = static_cast<size_t>(offset);
  constexpr size_t kHead = 12, kRecord = 16;
  if (file.size() < begin + kHead) return false;
  const size_t tables = BigEndian(file, begin + 4, 2);
  if (file.size() < begin + kHead + tables * kRecord) return false;
  for (size_t i = 0; i < tables; ++i) {
    const size_t record = begin + kHead + i * kRecord;
    if (uint64_t{BigEndian(file, record + 8, 4)} + BigEndian(file, record + 12, 4) > file.size())
      return false;
  }
  return true;
}

// Null for what is no font with outlines.
std::unique_ptr<Face> OpenFace(const std::string& path) {
  try {
    MappedFile file(path);
    const std::string_view bytes = file.bytes();
    constexpr size_t kLeast = 64;
    if (bytes.size() < kLeast) return nullptr;
    const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
    const int offset = stbtt_GetFontOffsetForIndex(data, 0);
    if (!IsWhole(bytes, offset)) return nullptr;
    auto face = std::make_unique<Face>(data, offset, std::move(file));
    return face->usable() ? std::move(face) : nullptr;
  } catch (const Error&) {  // a link that leads nowhere
    return nullptr;
  }
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

std::vector<fs::path> FontFolders() {
  std::vector<fs::path> folders;
  const std::string home = Variable("HOME"), data = Variable("XDG_DATA_HOME");
  if (!data.empty())
    folders.push_back(fs::path(data) / "fonts");
  else if (!home.empty())
    folders.push_back(fs::path(home) / ".local/share/fonts");
  if (!home.empty()) folders.push_back(fs::path(home) / ".fonts");
  std::string shared = Variable("XDG_DATA_DIRS");
  if (shared.empty()) shared = "/usr/local/share:/usr/share";
  for (size_t at = 0; at < shared.size();) {
    const size_t end = std::min(shared.find(':', at), shared.size());
    if (end > at) folders.push_back(fs::path(shared.substr(at, end - at)) / "fonts");
    at = end + 1;
  }
  return folders;
}

// By the name of the file, less is better.
int RankOf(const std::string& name) {
  const auto has = [&name](std::string_view part) { return name.find(part) != name.npos; };
  int rank = 0;
  if (!has("Sans") && !has("sans")) rank += 1;
  if (has("Serif") || has("Mono")) rank += 2;
  for (const char* other : {"Bold", "Italic", "Oblique", "Light", "Thin", "Black", "Condensed"}) {
    if (has(other)) rank += 4;
  }
  return rank;
}

// Appends a TrueType curve (quadratic) or one of PostScript (cubic) as line segments, or a straight
// line, to the contour.
void AddCurve(const stbtt_vertex& v, double scale, std::vector<Point>* contour) {
  constexpr int kPieces = 6;
  const auto at = [scale](int x, int y) { return Point{scale * x, -scale * y}; };
  const Point to = at(v.x, v.y), from = contour->back();
  const Point a = at(v.cx, v.cy), b = v.type == STBTT_vcubic ? at(v.cx1, v.cy1) : a;
  for (int i = 1; i < kPieces && v.type != STBTT_vline; ++i) {
    const double t = static_cast<double>(i) / kPieces, s = 1 - t;
    if (v.type == STBTT_vcubic) {
      const double p = s * s * s, q = 3 * s * s * t, r = 3 * s * t * t, u = t * t * t;
      contour->push_back(
          {p * from.x + q * a.x + r * b.x + u * to.x, p * from.y + q * a.y + r * b.y + u * to.y});
    } else {
      const double p = s * s, q = 2 * s * t, r = t * t;
      contour->push_back({p * from.x + q * a.x + r * to.x, p * from.y + q * a.y + r * to.y});
    }
  }
  contour->push_back(to);
}

}  // namespace

// Which fonts have been opened, and which characters are in which.
class FontSet::Impl {
 public:
  explicit Impl(std::optional<std::vector<std::string>> files) : files_(std::move(files)) {}

  Glyph Find(char32_t character, bool drawn) {
    if (const int index = embedded_.Find(character)) return {&embedded_, index};
    const MutexLock lock(mutex_);
    auto known = known_.find(character);
    if (known == known_.end()) known = known_.emplace(character, Search(character)).first;
    constexpr size_t kMost = 64;
    if (drawn && known->second.index == 0 && missing_.size() < kMost) missing_.insert(character);
    return known->second;
  }

  std::u32string missing() const {
    const MutexLock lock(mutex_);
    return {missing_.begin(), missing_.end()};
  }

 private:
  // Of fonts that are open already, then of the rest.
  Glyph Search(char32_t character) MXTRAIN_REQUIRES(mutex_) {
    for (const std::unique_ptr<Face>& face : faces_) {
      if (face->Draws(character)) return {face.get(), face->Find(character)};
    }
    if (!files_) files_ = FindFontFiles();
    for (std::string& path : *files_) {
      if (path.empty()) continue;  // open, or no font
      std::unique_ptr<Face> face = OpenFace(path);
      if (!face) path.clear();
      if (!face || !face->Draws(character)) continue;
      path.clear();
      faces_.push_back(std::move(face));
      return {faces_.back().get(), faces_.back()->Find(character)};
    }
    return {&embedded_, 0};
  }

  const Face embedded_{_binary_DejaVuSans_ttf_start, 0};
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Face>> faces_ MXTRAIN_GUARDED_BY(mutex_);  // of files
  std::optional<std::vector<std::string>> files_ MXTRAIN_GUARDED_BY(mutex_);
  std::map<char32_t, Glyph> known_ MXTRAIN_GUARDED_BY(mutex_);  // beside the embedded font's
  std::set<char32_t> missing_ MXTRAIN_GUARDED_BY(mutex_);
};

FontSet::FontSet() : impl_(std::make_unique<Impl>(std::nullopt)) {}
FontSet::FontSet(std::vector<std::string> files)
    : impl_(std::make_unique<Impl>(std::move(files))) {}
FontSet::~FontSet() = default;

Glyph FontSet::Find(char32_t character, bool drawn) {
  return impl_->Find(character, drawn);
}
std::u32string FontSet::missing() const {
  return impl_->missing();
}

namespace {

FontSet& Machine() {
  static FontSet fonts;
  return fonts;
}

}  // namespace

Glyph GlyphOf(char32_t character, bool drawn) {
  return Machine().Find(character, drawn);
}

double AdvanceOf(const Glyph& glyph) {
  // Most scripts that are missing are as wide as they are high.
  if (glyph.index == 0) return 1;
  int advance = 0, bearing = 0;
  stbtt_GetGlyphHMetrics(glyph.face->info(), glyph.index, &advance, &bearing);
  return advance * glyph.face->scale();
}

double KerningOf(const Glyph& left, const Glyph& right) {
  if (left.face != right.face) return 0;
  return stbtt_GetGlyphKernAdvance(left.face->info(), left.index, right.index) * left.face->scale();
}

std::vector<std::vector<Point>> OutlineOf(const Glyph& glyph) {
  const double scale = glyph.face->scale();
  std::vector<std::vector<Point>> contours;
  stbtt_vertex* vertices = nullptr;
  const int count = stbtt_GetGlyphShape(glyph.face->info(), glyph.index, &vertices);
  for (int i = 0; i < count; ++i) {
    const stbtt_vertex& v = vertices[i];
    if (v.type == STBTT_vmove) {
      contours.push_back({{scale * v.x, -scale * v.y}});
    } else if (!contours.empty()) {
      AddCurve(v, scale, &contours.back());
    }
  }
  stbtt_FreeShape(glyph.face->info(), vertices);
  return contours;
}

std::u32string MissingCharacters() {
  return Machine().missing();
}

std::string NoteOfMissing(std::u32string_view characters) {
  if (characters.empty()) return "";
  const auto any = [&](char32_t first, char32_t last) {
    return std::ranges::any_of(characters, [&](char32_t c) { return c >= first && c <= last; });
  };
  std::vector<std::string> packages;  // of Debian
  if (any(0x2E80, 0xA4CF) || any(0xAC00, 0xD7FF) || any(0xF900, 0xFAFF) || any(0x20000, 0x3FFFF))
    packages.emplace_back("fonts-noto-cjk");
  if (any(0x2190, 0x2BFF) || any(0x1F000, 0x1FAFF)) packages.emplace_back("fonts-symbola");
  if (packages.empty()) packages.emplace_back("fonts-noto-core");
  constexpr size_t kShown = 8;
  return format(
      "no font of this machine has {}{}, drawn as empty boxes in images; Debian's {} may have them",
      Utf8Of(characters.substr(0, kShown)), characters.size() > kShown ? "\u2026" : "",
      join(packages, " and "));
}

std::vector<std::string> FindFontFiles() {
  constexpr size_t kMost = 10000;
  std::vector<std::string> files;
  for (const fs::path& folder : FontFolders()) {
    std::error_code failed;
    for (fs::recursive_directory_iterator
             at(folder, fs::directory_options::skip_permission_denied, failed),
         end;
         !failed && at != end && files.size() < kMost; at.increment(failed)) {
      const std::string extension = at->path().extension();
      if (extension == ".ttf" || extension == ".otf" || extension == ".ttc")
        files.push_back(at->path());
    }
  }
  std::ranges::sort(files, {}, [](const std::string& path) {
    return std::pair(RankOf(fs::path(path).filename()), path);
  });
  return files;
}

}  // namespace mxtrain::plot
