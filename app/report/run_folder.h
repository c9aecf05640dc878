// SPDX-License-Identifier: Apache-2.0
#pragma once
// runs/NAME-0001: everything about one run. Written again only by resume or overwrite, and by one
// process at a time: each function that returns a folder locks it (flock on its file .lock,
// released when the process ends) and throws kFileSystem, naming the other process, if it is
// already locked. File systems without locks are not protected.
#include <memory>
#include <string>

namespace mxtrain::report {

// Whether there is a run in it: config.yaml, and beside it what only a run leaves: the lock, or, in
// a copy without hidden files, the record of its start or a checkpoint.
bool IsRunFolder(const std::string& path);

// Whether a path is that of a file that a run writes into its folder `run`, if it is one.
bool IsFileOfRun(const std::string& run, const std::string& path);

class RunFolder {
 public:
  // A new folder under `parent` with the next number; or `out` if given, which must not contain a
  // run unless `overwrite`, and no other file of a name that runs use. A run that is overwritten
  // must have nothing of others in its folders, which are removed. `config` is written as
  // config.yaml before anything else: a folder without it is never a run, even if the process was
  // killed. Throws kFileSystem.
  static RunFolder Create(const std::string& parent, const std::string& name,
                          const std::string& out, bool overwrite, const std::string& config);
  // Throws kFileSystem if Create would, as far as can be told without writing.
  static void RequireCreatable(const std::string& parent, const std::string& out, bool overwrite);
  // That of a run, or what the start of one left that was killed. Throws kUsage for a folder with
  // files of others, which is not touched; else as Open.
  static RunFolder OpenRun(const std::string& path);
  // An existing one, or any folder for use by one process at a time. Throws kFileSystem; also if a
  // part of it is a link, since the run must not change its target.
  static RunFolder Open(const std::string& path);
  // The newest run of this name under `parent`; throws kFileSystem if there is none.
  static RunFolder Newest(const std::string& parent, const std::string& name);

  // Whether it is empty except for hidden files, files of Open, and what a killed process left.
  static bool IsUnused(const std::string& path);

  // Whether there is a run of this name under `parent`.
  static bool Has(const std::string& parent, const std::string& name);

  // Points runs/latest at this run; does nothing for a run outside a folder `runs`. Called after
  // the first save, so that runs/latest always has weights.
  void BecomeLatest() const;

  // Whether a process is using it now.
  static bool IsBusy(const std::string& path);

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  std::string checkpoints() const { return File("checkpoints"); }
  void Write(const std::string& name, const std::string& text) const;

 private:
  class Lock;
  explicit RunFolder(std::string path);
  void Begin(const std::string& config) const;
  void RefuseLinks() const;
  std::string path_;
  std::shared_ptr<const Lock> lock_;
};

}  // namespace mxtrain::report
