// SPDX-License-Identifier: Apache-2.0
// Archives through libarchive, opened at run time. It reads them from their beginning; where the
// bytes of an image lie in the file is what it has consumed after the header, which is verified by
// the image's first bytes.
#include "mxtrain/io/image_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <clocale>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/folder_names.h"
#include "mxtrain/io/image_formats.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostInArchiveBytes = size_t{256} << 20;  // of an image
constexpr int64_t kMostHeldBytes = int64_t{4} << 30, kMostUncompressedBytes = int64_t{16} << 30;
constexpr int64_t kMostArchiveEntries = 10'000'000;
constexpr size_t kVerifiedBytes = 64;
constexpr size_t kBlockBytes = size_t{1} << 18;
constexpr size_t kTarHeaderBytes = 512, kTarMagicAt = 257;

// Of compressed files.
constexpr std::string_view kGzip("\x1f\x8b", 2), kBzip2("BZh", 3),
    kXz("\xfd"
        "7zXZ\0",
        6),
    kZstd("\x28\xb5\x2f\xfd", 4);

bool BeginsCompressed(std::string_view bytes) {
  return std::ranges::any_of(std::array{kGzip, kBzip2, kXz, kZstd},
                             [&](std::string_view magic) { return bytes.starts_with(magic); });
}

bool BeginsTarOrZip(std::string_view bytes) {
  return bytes.starts_with(std::string_view("PK\x03\x04", 4)) ||
         bytes.starts_with(std::string_view("PK\x05\x06", 4)) ||
         (bytes.size() > kTarMagicAt && bytes.substr(kTarMagicAt).starts_with("ustar"));
}

// The library, opened when the first archive is read: it needs many others, which no other run
// loads.
struct Libarchive {
  Libarchive() : handle(dlopen("libarchive.so.13", RTLD_NOW | RTLD_LOCAL)) {
    if (!handle) {
      const char* const why = dlerror();
      Throw(ErrorKind::kConfig,
            "archives need libarchive, which cannot be opened ({}); install the package "
            "libarchive13, "
            "or unpack the archive",
            why ? why : "no reason given");
    }
    Find("archive_read_new", &read_new);
    Find("archive_read_free", &read_free);
    Find("archive_read_support_format_tar", &read_support_format_tar);
    Find("archive_read_support_format_zip", &read_support_format_zip);
    Find("archive_read_support_filter_gzip", &read_support_filter_gzip);
    Find("archive_read_support_filter_bzip2", &read_support_filter_bzip2);
    Find("archive_read_support_filter_xz", &read_support_filter_xz);
    Find("archive_read_support_filter_zstd", &read_support_filter_zstd);
    Find("archive_read_open_fd", &read_open_fd);
    Find("archive_read_next_header", &read_next_header);
    Find("archive_read_data", &read_data);
    Find("archive_error_string", &error_string);
    Find("archive_format_name", &format_name);
    Find("archive_filter_code", &filter_code);
    Find("archive_filter_bytes", &filter_bytes);
    Find("archive_entry_size_is_set", &entry_size_is_set);
    Find("archive_entry_size", &entry_size);
    Find("archive_entry_filetype", &entry_filetype);
    Find("archive_entry_pathname_utf8", &entry_pathname_utf8);
    Find("archive_entry_pathname", &entry_pathname);
    Find("archive_entry_hardlink", &entry_hardlink);
    Find("archive_entry_is_encrypted", &entry_is_encrypted);
  }
  static const Libarchive& Get() {
    static const Libarchive library;
    return library;
  }

  decltype(&::archive_read_new) read_new;
  decltype(&::archive_read_free) read_free;
  decltype(&::archive_read_support_format_tar) read_support_format_tar;
  decltype(&::archive_read_support_format_zip) read_support_format_zip;
  decltype(&::archive_read_support_filter_gzip) read_support_filter_gzip;
  decltype(&::archive_read_support_filter_bzip2) read_support_filter_bzip2;
  decltype(&::archive_read_support_filter_xz) read_support_filter_xz;
  decltype(&::archive_read_support_filter_zstd) read_support_filter_zstd;
  decltype(&::archive_read_open_fd) read_open_fd;
  decltype(&::archive_read_next_header) read_next_header;
  decltype(&::archive_read_data) read_data;
  decltype(&::archive_error_string) error_string;
  decltype(&::archive_format_name) format_name;
  decltype(&::archive_filter_code) filter_code;
  decltype(&::archive_filter_bytes) filter_bytes;
  decltype(&::archive_entry_size_is_set) entry_size_is_set;
  decltype(&::archive_entry_size) entry_size;
  decltype(&::archive_entry_filetype) entry_filetype;
  decltype(&::archive_entry_pathname_utf8) entry_pathname_utf8;
  decltype(&::archive_entry_pathname) entry_pathname;
  decltype(&::archive_entry_hardlink) entry_hardlink;
  decltype(&::archive_entry_is_encrypted) entry_is_encrypted;

 private:
  template <typename Function>
  void Find(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    if (!*function) Throw(ErrorKind::kConfig, "libarchive lacks {}; install a newer one", name);
  }
  void* const handle;  // stays open
};

struct CloseArchive {
  void operator()(archive* a) const { Libarchive::Get().read_free(a); }
};
using ArchiveHandle = std::unique_ptr<archive, CloseArchive>;

// While it lives, names that an archive says are UTF-8 can be had: libarchive converts them to the
// encoding of the thread's locale, and in that of a program that sets none ("C") it has no name
// for "Äpfel.jpg".
class Utf8Locale {
 public:
  Utf8Locale() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_) before_ = uselocale(locale_);
  }
  ~Utf8Locale() {
    if (!locale_) return;
    uselocale(before_);
    freelocale(locale_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  const locale_t locale_;  // null if the system has none
  locale_t before_ = nullptr;
};

// What libarchive knows of an image.
struct ArchivedImage {
  enum class Stored { kPlain, kDeflated, kHeld };
  std::string name;
  Stored stored = Stored::kHeld;
  uint64_t offset = 0, size = 0;  // of the bytes in the file; of the image
  std::string bytes;              // kHeld
};

// Up to `size` bytes from `offset` on: as many as the file has.
std::string BytesAt(int fd, uint64_t offset, size_t size, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0)
    Throw(ErrorKind::kFileSystem, "cannot read {}: {}", path, ReasonOf(errno));
  const auto end = static_cast<uint64_t>(info.st_size);
  size = static_cast<size_t>(std::min<uint64_t>(size, end - std::min(end, offset)));
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t count =
        pread(fd, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) Throw(ErrorKind::kFileSystem, "cannot read {}: {}", path, ReasonOf(errno));
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

// The most bytes that deflate makes of so many.
size_t DeflatedBound(uint64_t size) {
  return static_cast<size_t>(size + size / 1000 + 1024);
}

// Nothing if these are not the deflated bytes of so many.
std::optional<std::string> Inflated(std::string_view bytes, uint64_t size) {
  constexpr uint64_t kMostOfByte = 1032;  // two bits repeat 258 bytes
  if (size / kMostOfByte > bytes.size()) return std::nullopt;
  std::string out(static_cast<size_t>(size), '\0');
  libdeflate_decompressor* const inflater = libdeflate_alloc_decompressor();
  if (!inflater) Throw(ErrorKind::kMemory, "no memory to read a zip archive");
  size_t read = 0, made = 0;
  const libdeflate_result result = libdeflate_deflate_decompress_ex(
      inflater, bytes.data(), bytes.size(), out.data(), out.size(), &read, &made);
  libdeflate_free_decompressor(inflater);
  if (result != LIBDEFLATE_SUCCESS || made != size) return std::nullopt;
  return out;
}

// Without ./ in front; nothing for a path out of the archive.
std::optional<std::string> NameInside(std::string name) {
  if (name.starts_with('/')) return std::nullopt;
  std::string inside;
  for (const fs::path& part : fs::path(name)) {
    if (part == "..") return std::nullopt;
    if (part == "." || part.empty()) continue;
    inside += (inside.empty() ? "" : "/") + part.string();
  }
  return inside;
}

std::vector<std::string> PartsOfPath(const std::string& name) {
  std::vector<std::string> parts;
  for (const fs::path& part : fs::path(name)) parts.push_back(part.string());
  return parts;
}

bool IsSkippedByName(const std::string& name) {
  return std::ranges::any_of(PartsOfPath(name), [](const std::string& part) {
    return part.starts_with('.') || IsSystemFolder(part);
  });
}

std::string PathnameOf(archive_entry* entry) {
  const Libarchive& lib = Libarchive::Get();
  if (const char* utf8 = lib.entry_pathname_utf8(entry)) return utf8;
  const char* const raw = lib.entry_pathname(entry);
  return raw ? raw : "";
}

}  // namespace

bool BeginsArchive(std::string_view bytes) {
  return BeginsTarOrZip(bytes) || BeginsCompressed(bytes);
}

bool IsImageArchive(const std::string& path) {
  std::error_code none;
  if (!fs::is_regular_file(path, none)) return false;
  std::string begin(kTarHeaderBytes, '\0');
  try {
    FileReader reader(path);
    begin.resize(reader.Read(begin));
  } catch (const Error&) {
    return false;
  }
  if (BeginsTarOrZip(begin)) return !path.ends_with(".pth") && !path.ends_with(".npz");
  if (!BeginsCompressed(begin)) return false;
  if (begin.starts_with(kGzip)) {
    try {
      return BeginsTarOrZip(ReadBeginMaybeGzip(path, kTarHeaderBytes));
    } catch (const Error&) {
      return false;
    }
  }
  const std::string name = Lower(fs::path(path).filename().string());
  return path == "/dev/stdin" || name.ends_with(".tbz2") || name.ends_with(".txz") ||
         name.find(".tar.") != std::string::npos;
}

struct ImageArchive::Impl {
  explicit Impl(const std::string& archive_path)
      : path(archive_path), file(path, O_RDONLY | O_NONBLOCK, "open") {
    struct stat info {};
    if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
      Throw(ErrorKind::kFileSystem, "{} is not a file, which an archive of images must be", path);
    Index();
    std::ranges::sort(images, {}, &ArchivedImage::name);
  }

  [[noreturn]] void Damaged(archive* a) const {
    const char* const why = lib.error_string(a);
    Throw(ErrorKind::kData, "{} cannot be read as an archive: {}", path, why ? why : "damaged");
  }

  void Index() {
    const Utf8Locale names;
    const ArchiveHandle handle(lib.read_new());
    archive* const a = handle.get();
    if (!a) Throw(ErrorKind::kMemory, "no memory to read {}", path);
    lib.read_support_format_tar(a);
    lib.read_support_format_zip(a);
    lib.read_support_filter_gzip(a);
    lib.read_support_filter_bzip2(a);
    lib.read_support_filter_xz(a);
    lib.read_support_filter_zstd(a);
    if (lib.read_open_fd(a, file.get(), kBlockBytes) != ARCHIVE_OK) Damaged(a);
    std::map<std::string, size_t> places;  // a later entry of a name replaces the earlier one
    for (int64_t entries = 0;; ++entries) {
      archive_entry* entry = nullptr;
      const int status = lib.read_next_header(a, &entry);
      if (status == ARCHIVE_EOF) break;
      if (status < ARCHIVE_WARN) Damaged(a);
      if (entries >= kMostArchiveEntries)
        Throw(ErrorKind::kData, "{} has more than {} entries", path, kMostArchiveEntries);
      std::optional<ArchivedImage> image = Take(a, entry);
      if (!image) continue;
      const auto [place, is_new] = places.emplace(image->name, images.size());
      if (is_new) {
        images.push_back(std::move(*image));
      } else {
        images[place->second] = std::move(*image);
      }
    }
    Tell();
  }

  // Nothing for an entry that is no image.
  std::optional<ArchivedImage> Take(archive* a, archive_entry* entry) {
    const bool compressed = lib.filter_code(a, 0) != ARCHIVE_FILTER_NONE;
    const int64_t size = lib.entry_size_is_set(entry) ? lib.entry_size(entry) : -1;
    if (compressed && lib.filter_bytes(a, 0) + std::max<int64_t>(size, 0) > kMostUncompressedBytes)
      Throw(ErrorKind::kData, "{} holds more than {}; unpack it", path,
            FormatBytes(kMostUncompressedBytes));
    if (lib.entry_filetype(entry) == AE_IFDIR) return std::nullopt;
    const std::string written = PathnameOf(entry);
    if (written.empty())
      Throw(ErrorKind::kData,
            "{}: the name of the file after {} cannot be read; unpack it, or make a tar of it",
            path, last_name.empty() ? std::string("the beginning") : last_name);
    last_name = written;
    if (lib.entry_filetype(entry) != AE_IFREG || lib.entry_hardlink(entry)) {
      links.Add(written);
      return std::nullopt;
    }
    const std::optional<std::string> name = NameInside(written);
    if (!name) {
      outside.Add(written);
      return std::nullopt;
    }
    if (IsSkippedByName(*name)) return std::nullopt;
    if (!HasImageEnding(*name)) {
      others.Add(*name);
      return std::nullopt;
    }
    if (lib.entry_is_encrypted(entry))
      Throw(ErrorKind::kData, "{} is encrypted ({}); unpack it", path, *name);
    ArchivedImage image;
    image.name = *name;
    if (size > static_cast<int64_t>(kMostInArchiveBytes)) TooLarge(*name);
    if (!compressed && size > 0 && Locate(a, static_cast<uint64_t>(size), &image)) return image;
    Hold(a, &image);
    return image;
  }

  [[noreturn]] void TooLarge(const std::string& name) const {
    Throw(ErrorKind::kData, "{}/{} has more than {}", path, name,
          FormatBytes(static_cast<int64_t>(kMostInArchiveBytes)));
  }

  // Whether the bytes lie in the file where libarchive has arrived; if not, some of those that it
  // gives are consumed, and in the image.
  bool Locate(archive* a, uint64_t size, ArchivedImage* image) {
    image->offset = static_cast<uint64_t>(lib.filter_bytes(a, 0));
    image->size = size;
    if (IsTrusted(a)) {
      image->stored = ArchivedImage::Stored::kDeflated;
      return true;
    }
    std::array<char, kVerifiedBytes> begin{};
    const la_ssize_t count = lib.read_data(a, begin.data(), begin.size());
    if (count < 0) Damaged(a);
    const std::string_view first(begin.data(), static_cast<size_t>(count));
    if (BytesAt(file.get(), image->offset, first.size(), path) == first) {
      image->stored = ArchivedImage::Stored::kPlain;
      return true;
    }
    const std::optional<std::string> inflated =
        Inflated(BytesAt(file.get(), image->offset, DeflatedBound(size), path), size);
    if (inflated && std::string_view(*inflated).starts_with(first)) {
      image->stored = ArchivedImage::Stored::kDeflated;
      ++deflated;
      return true;
    }
    image->bytes = first;
    elsewhere = true;
    return false;
  }

  // Whether libarchive says that an entry is deflated, in an archive of which that was true so
  // often that inflating each for its list would be waste: reading an image verifies it anyway.
  bool IsTrusted(archive* a) const {
    constexpr int kMostInflated = 16;
    const char* const format_name = lib.format_name(a);
    return deflated >= kMostInflated && !elsewhere && format_name &&
           std::string_view(format_name).ends_with("(deflation)");
  }

  // Appends to what was read of it.
  void Hold(archive* a, ArchivedImage* image) {
    std::array<char, size_t{1} << 16> block{};
    for (;;) {
      const la_ssize_t count = lib.read_data(a, block.data(), block.size());
      if (count < 0) Damaged(a);
      if (count == 0) break;
      image->bytes.append(block.data(), static_cast<size_t>(count));
      if (image->bytes.size() > kMostInArchiveBytes) TooLarge(image->name);
    }
    image->bytes.shrink_to_fit();
    image->stored = ArchivedImage::Stored::kHeld;
    image->size = image->bytes.size();
    held += static_cast<int64_t>(image->bytes.size());
    if (held > kMostHeldBytes)
      Throw(
          ErrorKind::kData,
          "{} is compressed, and holds more than {} of images, which would stay in memory; unpack "
          "it, or make an uncompressed tar of it",
          path, FormatBytes(kMostHeldBytes));
  }

  void Tell() {
    const auto tell = [this](const Skipped& skipped, const char* why) {
      if (skipped.count > 0)
        warnings.push_back(format("{} of {} skipped, {} (first: {})",
                                  Counted(skipped.count, "file"), path, why, skipped.first));
    };
    tell(others, format("not named like a {}", ImageFormatNames()).c_str());
    tell(links, "links or special files");
    tell(outside, "whose paths lead out of it");
  }

  struct Skipped {
    int64_t count = 0;
    std::string first;
    void Add(const std::string& name) {
      if (count++ == 0) first = name;
    }
  };

  const Libarchive& lib = Libarchive::Get();
  const std::string path;
  const FileDescriptor file;
  std::vector<ArchivedImage> images;
  std::vector<std::string> warnings;
  Skipped others, links, outside;
  std::string last_name;  // of the entry before
  int64_t held = 0;
  int deflated = 0;        // images that were found to be where libarchive had arrived
  bool elsewhere = false;  // one was not
};

ImageArchive::ImageArchive(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
ImageArchive::~ImageArchive() = default;

int64_t ImageArchive::size() const {
  return static_cast<int64_t>(impl_->images.size());
}
const std::string& ImageArchive::Name(int64_t index) const {
  return impl_->images[static_cast<size_t>(index)].name;
}
const std::vector<std::string>& ImageArchive::warnings() const {
  return impl_->warnings;
}
int64_t ImageArchive::held() const {
  return impl_->held;
}

void ImageArchive::Read(int64_t index, std::string* bytes) const {
  const ArchivedImage& image = impl_->images[static_cast<size_t>(index)];
  const auto fail = [&] {
    Throw(ErrorKind::kData, "{}/{} is damaged: its bytes are not in the archive any more",
          impl_->path, image.name);
  };
  switch (image.stored) {
    case ArchivedImage::Stored::kHeld:
      *bytes = image.bytes;
      return;
    case ArchivedImage::Stored::kPlain:
      *bytes =
          BytesAt(impl_->file.get(), image.offset, static_cast<size_t>(image.size), impl_->path);
      if (bytes->size() != image.size) fail();
      return;
    case ArchivedImage::Stored::kDeflated: {
      std::optional<std::string> inflated =
          Inflated(BytesAt(impl_->file.get(), image.offset, DeflatedBound(image.size), impl_->path),
                   image.size);
      if (!inflated) fail();
      *bytes = std::move(*inflated);
    }
  }
}

ArchiveParts PartsOf(const ImageArchive& archive) {
  ArchiveParts parts;
  for (int64_t i = 0; i < archive.size(); ++i) {
    const std::vector<std::string> path = PartsOfPath(archive.Name(i));
    std::string folder;
    for (size_t k = 0; k + 2 < path.size(); ++k) {  // with a class below it
      folder += (k > 0 ? "/" : "") + path[k];
      const Split split = SplitOf(path[k]);
      if (split == Split::kNone) continue;
      std::string& part = split == Split::kTrain ? parts.train
                          : split == Split::kVal ? parts.val
                                                 : parts.test;
      // seg_train/seg_train/ is the inner one.
      if (k + 3 < path.size() && SplitOf(path[k + 1]) == split) continue;
      if (part.empty()) part = folder;
      break;
    }
  }
  return parts;
}

}  // namespace mxtrain::io
