#pragma once
// runs/NAME-0001: everything about one run. Never written into again without resume or overwrite, and by one process at a time: each of the
// functions that give a folder locks it (flock on its file .lock, which ends with the process, however that ends) and throws kFileSystem,
// naming the other process, where it is locked already. File systems without locks go unguarded.
#include <memory>
#include <string>

namespace mxtrain::report {

class RunFolder {
 public:
  // A new folder under `parent` with the next number; or `out` itself when given, which must not hold a run unless `overwrite`. `config` becomes its
  // config.yaml before anything else is made in it: a folder without one is of no run, whenever its process was killed. Throws kFileSystem.
  static RunFolder Create(const std::string& parent, const std::string& name, const std::string& out, bool overwrite, const std::string& config);
  // An existing one, or any folder that one process at a time works in. Throws kFileSystem; also where a part of it is a link, since what that
  // leads to is not the run's to change.
  static RunFolder Open(const std::string& path);
  // The newest run of this name under `parent`; throws kFileSystem when there is none.
  static RunFolder Newest(const std::string& parent, const std::string& name);

  // Whether nothing is in it but what Open leaves, and files that a killed process was writing.
  static bool IsUnused(const std::string& path);

  // Whether there is a run of this name under `parent`.
  static bool Has(const std::string& parent, const std::string& name);

  // From now on runs/latest points at this run; nothing for one that does not lie in a folder `runs`. Called when the run has saved something: what
  // reads weights from runs/latest then finds some, whatever a newer run has come to.
  void BecomeLatest() const;

  // Whether a process works in it now.
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
