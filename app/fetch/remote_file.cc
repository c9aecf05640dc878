// SPDX-License-Identifier: Apache-2.0
#include "app/fetch/remote_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <thread>

#include "app/config/address.h"
#include "app/config/config.h"
#include "app/fetch/http_client.h"
#include "app/fetch/sha256.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/read_json.h"
#include "mxtrain/base/text.h"

namespace mxtrain::fetch {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts =
    3;  // as long as each brings more of the file, or the next begins the file
constexpr auto kBetweenLooks = std::chrono::milliseconds(100);
constexpr auto kBetweenLines = std::chrono::seconds(30);  // of progress, without a terminal
constexpr size_t kMostNoteBytes = 1 << 16;
constexpr size_t kLongestName = 120;
constexpr int kHashDigits = 16;

std::string Variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

// Held while a file is downloaded.
class FolderLock {
 public:
  FolderLock(const std::string& folder, const FetchOptions& options, console::Console& console)
      : file_(folder + "/.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, "open") {
    bool told = false;
    while (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK)
        Throw(ErrorKind::kFileSystem, "cannot lock {}/.lock: {}", folder, ReasonOf(errno));
      if (!told)
        console.Message(LogLevel::kInfo,
                        "another process is downloading this file; waiting for it");
      told = true;
      if (options.stops && options.stops())
        throw StoppedError("waiting for a download of another process was stopped");
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }

 private:
  const FileDescriptor file_;
};

class Download {
 public:
  Download(std::string url, std::string path, const FetchOptions& options,
           console::Console& console)
      : url_(std::move(url)),
        path_(std::move(path)),
        part_(path_ + ".part"),
        note_(path_ + ".part.json"),
        options_(options),
        console_(console) {}

  void Run() {
    HttpClient client;
    std::string failure;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const int64_t before = Begun();
      failure = Attempt(client);
      console_.ShowBar("");
      if (failure.empty()) return Keep();
      if (Begun() <= before && !from_beginning_) break;
    }
    Throw(ErrorKind::kFileSystem, "cannot download {}: {}{}", url_, failure, WhatIsKept());
  }

 private:
  // Bytes of the file that are there and can be continued.
  int64_t Begun() const {
    std::error_code error;
    const uintmax_t size = fs::file_size(part_, error);
    return error ? 0 : static_cast<int64_t>(size);
  }

  void Discard() const {
    std::error_code ignored;
    fs::remove(part_, ignored);
    fs::remove(note_, ignored);
  }

  std::string ReadNote() const {
    std::error_code error;
    if (!fs::exists(note_, error)) return "";
    const auto read = ReadJson<FileJson>(ReadFile(note_, kMostNoteBytes));
    const FileJson note = read && read->is_object() ? *read : FileJson::object();
    const auto text = [&note](const char* key) {
      const auto found = note.find(key);
      return found != note.end() && found->is_string() ? found->get<std::string>() : "";
    };
    return text("url") == url_ ? text("validator") : "";
  }

  // For the end of an error. Without a sign of its version the next call discards the part.
  std::string WhatIsKept() const {
    if (Begun() == 0 || ReadNote().empty()) return "";
    return format("; {} have come, the next call continues there", FormatBytes(Begun()));
  }

  // Why the file is not complete; "" if it is.
  std::string Attempt(HttpClient& client) {
    HttpRequest request{url_, Begun(), ReadNote()};
    // Without a sign of its version only the whole file is sure to be of one.
    if (request.validator.empty()) {
      Discard();
      request.from = 0;
    }
    total_ = -1;
    ours_ = from_beginning_ = false;
    file_.reset();
    HttpListener listener;
    listener.on_begin = [&](const HttpAnswer& answer) { Begin(request, answer); };
    listener.on_bytes = [&](std::string_view bytes) { Take(bytes); };
    listener.stops = options_.stops;
    const HttpEnd end = client.Get(request, listener);
    file_.reset();
    if (end.stopped) {
      throw StoppedError(format("the download of {} was stopped{}", url_, WhatIsKept()));
    }
    if (end.answer.status == 416 && request.from > 0) {  // nothing follows what has come
      if (end.answer.total == request.from) return "";
      Discard();
      from_beginning_ = true;
      return "the file has become shorter";
    }
    if (end.answer.status != 0 && end.answer.status != 200 && end.answer.status != 206)
      return Refusal(end.answer.status);
    if (!end.failure.empty()) return end.failure;
    if (total_ >= 0 && Begun() != total_) return format("{} of {} bytes came", Begun(), total_);
    return "";
  }

  std::string Refusal(int64_t status) const {
    if (status == 404) return "the server has no such file (404)";
    if (status == 401 || status == 403) {
      return format(
          "the server refuses access ({}); the file may need an account there: download it "
          "with another program, and name its path",
          status);
    }
    return format("the server answers with status {}", status);
  }

  // The head of the file, or of its rest.
  void Begin(const HttpRequest& request, const HttpAnswer& answer) {
    const bool continues = answer.status == 206 && request.from > 0;
    if (answer.status == 206 && !continues) {
      Throw(ErrorKind::kFileSystem,
            "cannot download {}: the server sends a part of it, and the whole file was asked for",
            url_);
    }
    if (continues && answer.from != request.from) {
      Discard();
      Throw(ErrorKind::kFileSystem,
            "cannot continue the download of {}: the server sends another part of it; try again, "
            "which starts from its beginning",
            url_);
    }
    if (Lower(answer.type).starts_with("text/html")) {
      Throw(ErrorKind::kData,
            "{} is a page for people to read (text/html), not a file of weights; give the address "
            "of the file itself, on the hub hf://OWNER/REPO/FILE",
            url_);
    }
    const int64_t from = continues ? request.from : 0;
    total_ = answer.bytes < 0
                 ? -1
                 : from + std::min(answer.bytes, std::numeric_limits<int64_t>::max() - from);
    if (continues && answer.total >= 0) total_ = answer.total;  // whatever part of it comes now
    if (options_.max_bytes > 0 && total_ > options_.max_bytes) ThrowTooLarge(FormatBytes(total_));
    if (!continues) Discard();
    ours_ = !continues;
    console_.Message(LogLevel::kInfo,
                     format("downloading {} ({}){} to {}", url_,
                            total_ < 0 ? "of unknown size" : FormatBytes(total_),
                            continues ? format(", from {} on", FormatBytes(from)) : "", path_));
    if (!continues)
      WriteFileAtomically(note_, Json({{"url", url_}, {"validator", answer.validator}}).dump());
    file_.emplace(part_, continues ? FileAppender::Begin::kContinue : FileAppender::Begin::kNew);
  }

  void Take(std::string_view bytes) {
    if (options_.max_bytes > 0 &&
        file_->size() + static_cast<int64_t>(bytes.size()) > options_.max_bytes) {
      ThrowTooLarge(format("more than {}", FormatBytes(options_.max_bytes)));
    }
    file_->Append(bytes);
    const auto now = std::chrono::steady_clock::now();
    if (console_.lines()) return ShowLine(now);
    if (!console_.bar() || now - shown_ < std::chrono::milliseconds(200)) return;
    shown_ = now;
    console_.ShowBar(total_ > 0 ? format("{} of {}, {} %", FormatBytes(file_->size()),
                                         FormatBytes(total_), Percent())
                                : FormatBytes(file_->size()));
  }

  // After 30 seconds, and every 30 seconds.
  void ShowLine(std::chrono::steady_clock::time_point now) {
    if (shown_ == std::chrono::steady_clock::time_point()) shown_ = now;
    if (now - shown_ < kBetweenLines) return;
    shown_ = now;
    console_.Message(LogLevel::kInfo,
                     total_ > 0 ? format("{} of {} have come, {} %", FormatBytes(file_->size()),
                                         FormatBytes(total_), Percent())
                                : format("{} have come", FormatBytes(file_->size())));
  }

  int64_t Percent() const {
    return static_cast<int64_t>(100.0 * static_cast<double>(file_->size()) /
                                static_cast<double>(total_));
  }

  // What an earlier call has brought stays, for one with a higher limit.
  [[noreturn]] void ThrowTooLarge(const std::string& size) {
    file_.reset();
    if (ours_) Discard();
    Throw(ErrorKind::kData, "{} has {}; at most {} are downloaded (--max-download)", url_, size,
          FormatBytes(options_.max_bytes));
  }

  // The file is complete: under its name, if it is the right one.
  void Keep() {
    if (!fs::exists(part_)) WriteFileAtomically(part_, "");  // of no bytes
    const std::string sum = Sha256OfFile(part_);
    if (!options_.sha256.empty() && sum != options_.sha256) {
      Discard();
      Throw(ErrorKind::kData,
            "{} has the SHA-256 {}, but train.weights.sha256 is {}: it is not the file that was "
            "meant, or was changed; nothing of it is kept",
            url_, sum, options_.sha256);
    }
    // On disk before it has its name, as FileWriter does it.
    Sync(part_, O_RDONLY);
    RenameFile(part_, path_);
    Sync(fs::path(path_).parent_path().string(), O_RDONLY | O_DIRECTORY);
    Discard();
    if (options_.sha256.empty()) {
      console_.Message(
          LogLevel::kInfo,
          format("its SHA-256 is {0}; train.weights.sha256={0} refuses any other file", sum));
    }
  }

  static void Sync(const std::string& path, int flags) {
    const FileDescriptor file(path, flags, "open");
    // Some file systems cannot sync folders.
    if (fsync(file.get()) != 0 && errno != EINVAL)
      Throw(ErrorKind::kFileSystem, "cannot sync {}: {}", path, ReasonOf(errno));
  }

  const std::string url_, path_, part_, note_;
  const FetchOptions& options_;
  console::Console& console_;
  std::optional<FileAppender> file_;
  int64_t total_ = -1;           // bytes of the whole file; -1: unknown
  bool ours_ = false;            // whether this attempt began the part
  bool from_beginning_ = false;  // whether the next attempt begins the file, since the part is bad
  std::chrono::steady_clock::time_point shown_;
};

std::string CacheDir() {
  if (const std::string own = Variable("MXTRAIN_CACHE_DIR"); !own.empty()) return own;
  if (const std::string base = Variable("XDG_CACHE_HOME"); base.starts_with('/'))
    return base + "/mxtrain";
  const std::string home = Variable("HOME");
  if (home.empty())
    Throw(ErrorKind::kUsage, "there is no HOME for a cache of downloads; use --cache-dir DIR");
  return home + "/.cache/mxtrain";
}

}  // namespace

FetchOptions OptionsOfEnvironment() {
  FetchOptions options;
  options.cache_dir = CacheDir();
  const std::string offline = Variable("MXTRAIN_OFFLINE");
  options.offline = !offline.empty() && offline != "0";
  options.max_bytes = int64_t{4} << 30;
  if (const std::string most = Variable("MXTRAIN_MAX_DOWNLOAD"); !most.empty()) {
    const auto size = config::ParseByteCount(most);
    if (!size) {
      Throw(ErrorKind::kUsage,
            "MXTRAIN_MAX_DOWNLOAD={} is not a size; use 4GiB, 500MB or a number of bytes", most);
    }
    options.max_bytes = size->bytes;
  }
  return options;
}

void CheckSha256(const std::string& path, const std::string& sha256) {
  const std::string wanted = config::ToSha256(sha256), sum = Sha256OfFile(path);
  if (sum == wanted) return;
  Throw(ErrorKind::kData,
        "{} has the SHA-256 {}, but train.weights.sha256 is {}: it is not the file that was meant",
        path, sum, wanted);
}

namespace {

// No two names of a folder there become one here. What is hidden, long, or named like a part of a
// download gets a name of its own.
std::string NameInCache(const std::string& name) {
  if (name.empty()) return "file";
  const bool plain = name.size() <= kLongestName && !name.starts_with('.') &&
                     !name.ends_with(".part") && !name.ends_with(".part.json") && name != "file";
  if (plain) return name;
  const std::string end = name.substr(name.size() - std::min(name.size(), kLongestName));
  return "file-" + Sha256OfText(name).substr(0, kHashDigits) + "-" +
         end.substr(std::min(end.find_first_not_of('.'), end.size()));
}

}  // namespace

std::string FetchFile(const std::string& address, const FetchOptions& given,
                      console::Console& console) {
  const std::string url = config::UrlOf(address, Variable("HF_ENDPOINT"));
  if (const std::string why = WhyNoDownloads(); !why.empty())
    Throw(ErrorKind::kConfig, "{}: {}", address, why);
  FetchOptions options = given;
  if (!options.sha256.empty()) options.sha256 = config::ToSha256(options.sha256);
  const std::string cache = fs::absolute(options.cache_dir).lexically_normal().string();
  // What lies in one folder there lies in one here, as an index and its files must.
  const std::string folder =
      cache + "/weights/" + Sha256OfText(config::SiblingOf(url, "")).substr(0, kHashDigits);
  const std::string path = folder + "/" + NameInCache(config::FileNameOf(url));
  // A file has its name when it is whole: to find one takes no lock, and a cache that may only be
  // read serves.
  const auto cached = [&] {
    return fs::exists(path) && (options.sha256.empty() || Sha256OfFile(path) == options.sha256);
  };
  if (cached()) return path;
  if (options.offline && fs::exists(path)) CheckSha256(path, options.sha256);
  if (options.offline) {
    Throw(ErrorKind::kFileSystem,
          "{} is not in the cache ({}), and --offline forbids to download it", address, cache);
  }
  MakeFolders(folder);
  const FolderLock lock(folder, options, console);
  if (cached()) return path;  // another process was faster
  if (fs::exists(path)) {
    console.Message(LogLevel::kWarning,
                    format("{} in the cache has another SHA-256, {}; it is downloaded again, and "
                           "replaced if what comes is the right file",
                           path, Sha256OfFile(path)));
  }
  Download(url, path, options, console).Run();
  return path;
}

}  // namespace mxtrain::fetch
