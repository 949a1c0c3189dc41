// The database of a build without SQLite (UCUDNN_USE_SQLITE=OFF): always empty.
#include <atomic>

#include "cache/database.hpp"
#include "support/log.hpp"

namespace ucudnn {

class Database::Implementation {
 public:
  explicit Implementation(std::string path) : path_(std::move(path)) {}

  void warnOnce() noexcept {
    if (path_.empty() || warned_.exchange(true)) return;
    logWarn("UCUDNN_DATABASE=\"{}\": this build has no SQLite; measurements are not kept", path_);
  }

 private:
  const std::string path_;
  std::atomic<bool> warned_{false};
};

Database::Database(std::string path)
    : implementation_(std::make_unique<Implementation>(std::move(path))) {}
Database::~Database() = default;

StoredProblem Database::loadAll(const MachineKey&, const std::string&, bool*) noexcept {
  implementation_->warnOnce();
  return {};
}

void Database::store(const MachineKey&, const std::string&, const StoredMeasurements&) noexcept {
  implementation_->warnOnce();
}

void Database::warnOfLies() noexcept {}

}  // namespace ucudnn
