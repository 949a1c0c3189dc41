// Databases: planned from on the simulator, listed, exported and merged.
#include <sqlite3.h>

#include <algorithm>
#include <map>

#include "cache/maintenance.hpp"
#include "planner/planner.hpp"
#include "support/lies.hpp"
#include "support/log.hpp"
#include "support/problems.hpp"
#include "support/simulator.hpp"
#include "target.hpp"

namespace ucudnn::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLimits[] = {std::size_t{1} << 20, std::size_t{64} << 20};
/// Larger files are used as the scripts make them, once.
constexpr std::size_t kMostToMutate = std::size_t{1} << 20;

std::vector<Problem> problems() {
  Problem tf32 = test::sampleProblem(Operation::kForward, 8, 32);
  tf32.mathType = CUDNN_DEFAULT_MATH;
  return {test::sampleProblem(Operation::kForward, 12, 64),
          test::sampleProblem(Operation::kBackwardFilter, 8, 16),
          tf32};
}

class DatabaseTarget final : public Target {
 public:
  explicit DatabaseTarget(std::string directory)
      : directory_(std::move(directory)),
        log_(directory_ + "/log"),
        scripts_(corpusOf("databases")),
        handle_(makeOwned<CudnnHandle>(cudnnCreate)) {
    require(test::onSimulator(), "this is no simulator");
    test::setArithmetic(test::Arithmetic::kOff);
    scripts_.erase(
        std::remove_if(scripts_.begin(),
                       scripts_.end(),
                       [](const auto& file) { return fs::path(file.first).extension() != ".sql"; }),
        scripts_.end());
    std::sort(scripts_.begin(), scripts_.end());
    made_.resize(scripts_.size());
    const std::string path = directory_ + "/good.db";
    plan(path, Measuring::kNow);
    good_ = contentsOf(path);
    sqlite3* connection = nullptr;
    sqlite3_open(path.c_str(), &connection);
    sqlite3_exec(connection,
                 "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; UPDATE measurement SET "
                 "time_ms = time_ms * 2",
                 nullptr,
                 nullptr,
                 nullptr);
    logged_ = contentsOf(path + "-wal");
    sqlite3_close(connection);
    fs::remove(path);
    require(good_.size() > 10000 && logged_.size() > 4000, "no database was made");
  }

  std::string name() const override { return "databases"; }
  std::size_t size() const override { return scripts_.size(); }
  int perRound() const override { return 8; }

  /// A good database, changed by the script.
  std::string input(std::size_t index) override {
    const auto& [file, script] = scripts_[index];
    if (!made_[index].empty()) return made_[index];
    const std::string path = directory_ + "/script.db";
    fs::remove(path);
    if (file.find("foreign_") != 0) writeFile(path, good_);
    sqlite3* connection = nullptr;
    sqlite3_open(path.c_str(), &connection);
    char* message = nullptr;
    sqlite3_exec(connection, script.c_str(), nullptr, nullptr, &message);
    const std::string why = message == nullptr ? "" : message;
    sqlite3_free(message);
    sqlite3_close(connection);
    require(why.empty(), file + ": " + why);
    std::string bytes = contentsOf(path);
    if (bytes.size() > kMostToMutate) return std::exchange(made_[index], good_), bytes;
    return made_[index] = std::move(bytes);
  }

  void run(const std::string& bytes, Mutator& mutator) override {
    const std::string path = directory_ + "/hostile.db";
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) fs::remove(path + suffix);
    const bool isLie = mutator.oneIn(4);  // in a sound file: SQLite itself would hang on others
    writeFile(path, isLie ? good_ : bytes);
    if (isLie) test::lieInEveryNumber(path, static_cast<unsigned>(mutator.below(1 << 20)));
    if (mutator.oneIn(8)) writeFile(path + "-wal", mutator.mutate(logged_, bytes));
    if (mutator.oneIn(8)) writeFile(path + "-journal", mutator.mutate(logged_, bytes));
    if (mutator.oneIn(16))
      writeFile(path + "-shm", mutator.mutate(logged_.substr(0, 32768), bytes));
    const std::uintmax_t before = fs::file_size(path);
    fs::remove(log_);
    Log::instance().configure(LogLevel::kOff, "");
    Log::instance().configure(LogLevel::kWarn, log_);
    // Measuring takes most of the time, and reads little of the file.
    plan(path, mutator.oneIn(8) ? Measuring::kNow : Measuring::kIfKnown);
    Log::instance().configure(LogLevel::kOff, "");
    checkLog(path);
    maintain(path);
    constexpr std::uintmax_t kMostGrowth = std::uintmax_t{1} << 20;
    require(fs::file_size(path) <= before + kMostGrowth, "the file has grown");
  }

 private:
  void plan(const std::string& path, Measuring measuring) {
    Planner planner;
    Settings settings;
    settings.databasePath = path;
    const std::vector<int> noDevices;
    for (const Problem& problem : problems())
      for (const std::size_t limit : kLimits)
        for (const bool deterministic : {false, true}) {
          PlanRequest request;
          request.handle = handle_.get();
          request.machine = planner.machines().ofDevice(0);
          request.problem = problem;
          request.limitBytes = limit;
          request.deterministic = deterministic;
          request.settings = &settings;
          request.benchmarkDevices = &noDevices;
          if (const auto plan = planner.answer(request, measuring).plan) check(*plan, request);
          for (const Measurement& m : planner.undivided(request))
            require(m.workspaceBytes <= limit && m.kernel.mathType == problem.mathType,
                    "a kernel that does not fit is named");
        }
  }

  /// Requires that cuDNN can run the plan, as the request wants it.
  void check(const Plan& plan, const PlanRequest& request) const {
    const std::string text = toText(plan);
    int samples = 0;
    require(plan.workspaceBytes <= request.limitBytes, text + " needs more than the limit");
    for (const Plan::Step& step : plan.steps) {
      samples += step.batch * step.count;
      const Problem part = plan.problem.withBatch(step.batch);
      const auto offer = offeredKernel(
          handle_.get(), part, std::make_shared<const ProblemDescriptors>(part), step.kernel);
      require(offer.has_value(), text + " is not what cuDNN has");
      require(offer->workspaceBytes == step.workspaceBytes, text + " lies about its workspace");
      require(step.workspaceBytes <= plan.workspaceBytes, text + " has too little workspace");
      require(offer->deterministic == step.deterministic, text + " lies about determinism");
      require(offer->deterministic || !request.deterministic, text + " is not deterministic");
      require(step.kernel.mathType == request.problem.mathType, text + " has another math type");
    }
    require(samples == request.problem.batch(), text + " does not add up");
    require(plan.predictedMs > 0 && plan.predictedMs < 1e12, text + " takes no time that can be");
  }

  void checkLog(const std::string& path) const {
    std::istringstream stream(contentsOf(log_));
    int ofDatabase = 0;
    for (std::string line; std::getline(stream, line);) {
      requireOneLine(line);
      ofDatabase += line.find(path) != std::string::npos ? 1 : 0;
    }
    require(ofDatabase <= 1, "the file is warned of " + std::to_string(ofDatabase) + " times");
  }

  void maintain(const std::string& path) const {
    const std::string merged = directory_ + "/merged.db";
    fs::remove(merged);
    const auto attempt = [](auto body) {
      try {
        body();
      } catch (const Finding&) {
        throw;
      } catch (const std::runtime_error& error) {
        requireOneLine(error.what());
      }
    };
    attempt([&] { listDatabase(path); });
    attempt([&] { exportDatabase(path, directory_ + "/hostile.json"); });
    attempt([&] { mergeDatabase(merged, path); });
  }

  std::string directory_;
  std::string log_;
  std::vector<std::pair<std::string, std::string>> scripts_;
  std::vector<std::string> made_;
  std::string good_;
  std::string logged_;
  CudnnHandle handle_;
};

}  // namespace

std::unique_ptr<Target> makeDatabaseTarget(const std::string& directory) {
  return std::make_unique<DatabaseTarget>(directory);
}

}  // namespace ucudnn::fuzz
