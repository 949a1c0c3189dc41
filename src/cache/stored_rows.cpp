#include "cache/stored_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

namespace ucudnn {
namespace {

/// For one problem: all sizes of a mini-batch of 4096, with several kernels each.
constexpr std::size_t kMostRows = 1 << 16;
/// A file within both bounds is read as a whole: it holds six AlexNets, and takes 1 to 2 ms.
constexpr std::int64_t kMostPagesOfWhole = 128;
constexpr std::size_t kMostRowsOfWhole = 1 << 12;
/// Few sizes have more.
constexpr std::size_t kKernelsOfSize = 8;

enum SizeColumn { kProblemId, kProblem, kSizeId, kBatch, kCovered, kMeasuredAt };
enum KernelColumn { kKernel, kTime, kWorkspace, kDeterministic, kDeviceTime, kError };

/// CROSS JOIN keeps this order: by itself SQLite would read all sizes of the machine for a problem.
constexpr char kSizes[] =
    "SELECT problem.id, problem.text, size.id, size.batch, size.covered_bytes, size.measured_at "
    "FROM machine CROSS JOIN problem CROSS JOIN size "
    "ON size.machine_id = machine.id AND size.problem_id = problem.id "
    "WHERE device_name = ? AND compute_capability = ? AND multiprocessor_count = ? "
    "AND driver_version = ? AND cuda_version = ? AND cudnn_version = ? AND simulated = ?";
constexpr char kOfProblem[] = " AND problem.text >= ? AND problem.text < ?";
// The kernels of a size. One statement for both would repeat the size, and the problem's long text.
constexpr char kKernels[] =
    "SELECT kernel, time_ms, workspace_bytes, deterministic, device_ms "
    "FROM measurement WHERE size_id = ?";
constexpr char kKernelsWithErrors[] =
    "SELECT kernel, time_ms, workspace_bytes, deterministic, device_ms, error.value "
    "FROM measurement LEFT JOIN error USING (size_id, kernel) WHERE size_id = ?";

/// Returns false if a value is not what it should be.
bool readKernel(const SqliteStatement& row,
                bool withErrors,
                std::vector<StoredMeasurement>& kernels) {
  const bool typed = row.has(kKernel, SQLITE_TEXT) && row.has(kTime, SQLITE_FLOAT) &&
                     row.has(kWorkspace, SQLITE_INTEGER) &&
                     row.has(kDeterministic, SQLITE_INTEGER) && row.has(kDeviceTime, SQLITE_FLOAT);
  if (!typed) return false;
  const std::string_view kernel = row.view(kKernel);
  const std::int64_t workspaceBytes = row.integer(kWorkspace);
  if (workspaceBytes < 0 || kernel.size() > kLongestKernel) return false;
  kernels.push_back({std::string(kernel),
                     row.real(kTime),
                     static_cast<std::size_t>(workspaceBytes),
                     row.integer(kDeterministic) != 0,
                     row.real(kDeviceTime)});
  if (withErrors && !row.has(kError, SQLITE_NULL)) {
    if (!row.has(kError, SQLITE_FLOAT)) return false;
    kernels.back().error = row.real(kError);
  }
  return isPossible(kernels.back());
}

/// Returns the batch size, or 0 if a value is not what it should be.
int readSize(const SqliteStatement& row, StoredSize& size) {
  if (!row.has(kBatch, SQLITE_INTEGER) || !row.has(kCovered, SQLITE_INTEGER)) return 0;
  const std::int64_t batch = row.integer(kBatch);
  const std::int64_t coveredBytes = row.integer(kCovered);
  if (batch < 1 || batch > std::numeric_limits<int>::max() || coveredBytes < 0) return 0;
  size.coveredBytes = fromStoredBytes(coveredBytes);
  return static_cast<int>(batch);
}

/// Ends a statement's steps, whatever ends the scope.
class Reset {
 public:
  explicit Reset(SqliteStatement& statement) noexcept : statement_(statement) {}
  ~Reset() { statement_.reset(); }
  Reset(const Reset&) = delete;
  Reset& operator=(const Reset&) = delete;

 private:
  SqliteStatement& statement_;
};

/// The problem, and all texts that begin with its text and a space.
template <typename Problems>
auto rangeOf(Problems& problems, const std::string& problem) {
  return std::make_pair(problems.lower_bound(problem), problems.lower_bound(behind(problem)));
}

/// Whether some of the problem's range was taken before, which leaves empty entries: for this
/// problem, or for one that this problem's text begins with.
bool isTaken(const std::map<std::string, StoredMeasurements>& problems,
             const std::string& problem) {
  const auto [begin, end] = rangeOf(problems, problem);
  return std::any_of(begin, end, [](const auto& each) { return each.second.empty(); });
}

/// Takes the problem's range out of `problems`.
StoredProblem takePart(std::map<std::string, StoredMeasurements>& problems,
                       const std::string& problem) {
  StoredProblem part;
  const auto [begin, end] = rangeOf(problems, problem);
  for (auto each = begin; each != end; ++each) {
    const std::string& text = each->first;
    if (text.size() == problem.size())
      part.emplace("", std::exchange(each->second, {}));
    else if (text[problem.size()] == ' ')
      part.emplace(text.substr(problem.size() + 1), std::exchange(each->second, {}));
  }
  return part;
}

}  // namespace

bool isPossible(const StoredMeasurement& measurement) {
  const auto isNumber = [](double value) { return std::isfinite(value) && value >= 0; };
  return !measurement.kernel.empty() && measurement.kernel.size() <= kLongestKernel &&
         isNumber(measurement.timeMs) && isNumber(measurement.deviceMs) &&
         isNumber(measurement.error);
}

StoredProblem StoredRows::read(const MachineKey& machine,
                               const std::string& problem,
                               bool* isValid) {
  // One transaction, because each locks the file anew and looks at its schema.
  std::optional<SqliteTransaction> transaction;
  if (!whole_ || whole_->machine != machine || isTaken(whole_->problems, problem) ||
      whole_->header != file_.connection.rawBytes(kHeaderBytes)) {
    whole_.reset();
    transaction.emplace(file_.connection, SqliteTransaction::Kind::kRead);
    checkSchema(file_);
    prepareKernels();
    // Only once, because a file that changes would be read over and over.
    if (std::exchange(mayReadWhole_, false)) whole_ = readWhole(machine, isValid);
  }
  StoredProblem found;
  if (whole_) {
    found = takePart(whole_->problems, problem);
  } else {
    Problems read = readProblem(machine, problem, isValid);
    found = takePart(read, problem);
  }
  if (transaction) transaction->commit();
  return found;
}

std::optional<MachineKey> StoredRows::machineLike(const MachineKey& machine) {
  SqliteStatement others(file_.connection,
                         "SELECT driver_version, cuda_version, cudnn_version, device_name, "
                         "compute_capability, multiprocessor_count FROM machine "
                         "WHERE simulated = ?");
  others.bind(std::int64_t{machine.simulated});
  // The device counts first, then cuDNN's version, because the kernels are cuDNN's.
  const auto distance = [&](const MachineKey& other) {
    const auto apart = [](auto a, auto b) { return a < b ? b - a : a - b; };
    const bool isSame = other.deviceName == machine.deviceName &&
                        other.multiprocessorCount == machine.multiprocessorCount;
    return std::make_tuple(apart(other.computeCapability, machine.computeCapability),
                           isSame ? 0 : 1,
                           apart(other.cudnnVersion, machine.cudnnVersion),
                           apart(other.driverVersion, machine.driverVersion),
                           apart(other.cudaVersion, machine.cudaVersion));
  };
  constexpr std::size_t kMajor = 10000;
  std::optional<MachineKey> nearest;
  while (others.step()) {
    MachineKey other;
    other.driverVersion = static_cast<int>(others.integer(0));
    other.cudaVersion = static_cast<int>(others.integer(1));
    other.cudnnVersion = fromStoredBytes(others.integer(2));
    other.deviceName = others.text(3);
    other.computeCapability = static_cast<int>(others.integer(4));
    other.multiprocessorCount = static_cast<int>(others.integer(5));
    other.simulated = machine.simulated;
    const bool isLike =
        other != machine && other.cudnnVersion / kMajor == machine.cudnnVersion / kMajor;
    if (isLike && (!nearest || distance(other) < distance(*nearest))) nearest = std::move(other);
  }
  return nearest;
}

void StoredRows::prepareKernels() {
  if (kernels_ && hadErrors_ == file_.hasErrors) return;
  hadErrors_ = file_.hasErrors;
  kernels_.emplace(file_.connection, hadErrors_ ? kKernelsWithErrors : kKernels);
}

/// Empty if there are more rows than `most`.
std::optional<StoredRows::Problems> StoredRows::collect(SqliteStatement& sizes,
                                                        std::size_t most,
                                                        bool* isValid) {
  const Reset atTheEnd(sizes);
  Problems problems;
  StoredMeasurements* found = nullptr;
  std::int64_t id = 0;
  oldest_ = std::numeric_limits<std::int64_t>::max();
  for (std::size_t rows = 0; sizes.step();) {
    if (found == nullptr || sizes.integer(kProblemId) != id)
      found = &problems[sizes.text(kProblem)];
    id = sizes.integer(kProblemId);
    oldest_ = std::min(oldest_, sizes.integer(kMeasuredAt));
    StoredSize size;
    const int batch = readSize(sizes, size);
    const bool areValid = readKernels(sizes.integer(kSizeId), most, rows, size.kernels);
    if (size.kernels.empty()) ++rows;
    if (rows > most) return std::nullopt;
    if (batch > 0 && areValid)
      found->insert_or_assign(batch, std::move(size));
    else
      *isValid = false;
  }
  return problems;
}

/// Reads a size's kernels and counts them in `rows`. Stops when it has counted more than `most`.
/// Returns false if a value is not what it should be: the size must not be trusted then.
bool StoredRows::readKernels(std::int64_t sizeId,
                             std::size_t most,
                             std::size_t& rows,
                             std::vector<StoredMeasurement>& kernels) {
  const Reset atTheEnd(*kernels_);
  kernels.reserve(kKernelsOfSize);
  bool areValid = true;
  kernels_->bind(sizeId);
  for (; rows <= most && kernels_->step(); ++rows)
    if (!readKernel(*kernels_, hadErrors_, kernels)) areValid = false;
  return areValid;
}

/// Empty if the file is too large, or damaged. The problem that is asked for may still be there.
std::optional<StoredRows::Whole> StoredRows::readWhole(const MachineKey& machine, bool* isValid) {
  SqliteConnection& connection = file_.connection;
  try {
    if (connection.integer("PRAGMA page_count") > kMostPagesOfWhole) return std::nullopt;
    SqliteStatement sizes(connection, kSizes);
    bindMachine(sizes, machine);
    auto problems = collect(sizes, kMostRowsOfWhole, isValid);
    if (!problems) return std::nullopt;
    return Whole{connection.rawBytes(kHeaderBytes), machine, std::move(*problems)};
  } catch (const SqliteError& error) {
    if (error.code() != SQLITE_CORRUPT) throw;
    return std::nullopt;
  }
}

StoredRows::Problems StoredRows::readProblem(const MachineKey& machine,
                                             const std::string& problem,
                                             bool* isValid) {
  if (!ofProblem_) ofProblem_.emplace(file_.connection, (std::string(kSizes) + kOfProblem).c_str());
  const std::string end = behind(problem);
  bindMachine(*ofProblem_, machine, problem, end);
  auto problems = collect(*ofProblem_, kMostRows, isValid);
  if (!problems) throw DatabaseRefused("it holds too many rows of one problem");
  return std::move(*problems);
}

}  // namespace ucudnn
