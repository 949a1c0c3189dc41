// The database of a build without SQLite (UCUDNN_USE_SQLITE=OFF): always empty.
#include <atomic>

#include "cache/database.hpp"
#include "support/log.hpp"

namespace ucudnn {

class Database::Implementation {
 public:
  Implementation(std::string path, DatabaseUse use) : path_(std::move(path)), use_(use) {}

  void warnOnce() noexcept {
    if (path_.empty() || use_ != DatabaseUse::kNamed || warned_.exchange(true)) return;
    logWarn("UCUDNN_DATABASE=\"{}\": this build has no SQLite; measurements are not kept", path_);
  }

 private:
  const std::string path_;
  const DatabaseUse use_;
  std::atomic<bool> warned_{false};
};

Database::Database(std::string path, DatabaseUse use, std::size_t)
    : implementation_(std::make_unique<Implementation>(std::move(path), use)) {}
Database::~Database() = default;

StoredProblem Database::loadAll(const MachineKey&, const std::string&, bool*) noexcept {
  implementation_->warnOnce();
  return {};
}

StoredProblem Database::loadElsewhere(const MachineKey&, const std::string&, MachineKey&) noexcept {
  return {};
}

void Database::store(const MachineKey&, const std::string&, const StoredMeasurements&) noexcept {
  implementation_->warnOnce();
}

void Database::warnOfLies() noexcept {}

}  // namespace ucudnn
