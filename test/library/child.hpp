// Other processes: what a second start of a program sees.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../support/temporary_directory.hpp"
#include "fixture.hpp"

namespace ucudnn::test {

/// The result of a child process: its exit status (128 and more: killed by a signal) and its
/// output.
struct ChildResult {
  int status = -1;
  std::string output;
};

/// Runs the program `library_client` that lies beside this one (its head comment says what it
/// takes), with these variables added to the environment.
ChildResult runClient(const std::vector<std::string>& arguments,
                      const std::map<std::string, std::string>& environment);

/// Changes a benchmark database. Throws std::runtime_error.
void executeSql(const std::string& database, const std::string& sql);

/// While it lives, new handles plan from a database in which every undivided kernel of the given
/// convolutions is a thousand times slower than it was measured: so all of them are split, whatever
/// the device. Kernels without workspace are made slow as well, thirty times, so that the plans
/// need some. The device takes as long as the host, so that a call runs by the same plan whether it
/// is enqueued or replayed. The measuring is done by another process; this one finds everything in
/// the database.
class ForcedSplits {
 public:
  enum class Operations { kThree, kFused };
  explicit ForcedSplits(const std::vector<ConvolutionCase>& cases,
                        Operations operations = Operations::kThree);

  std::string database() const { return directory_.file("measurements.db"); }

 private:
  TemporaryDirectory directory_;
  EnvironmentGuard environment_;
};

/// Lets ForcedSplits' database say that all engines were measured in two tiles, whatever the
/// problem. Only of those without workspace, on the simulator, is it what cuDNN says of the tiles:
/// others go.
void forceTiles(const std::string& database);

/// Lets it say that of all engines those alone were measured whose names end so, and that to replay
/// them gains. With `bytes`, all without workspace were measured so, and need so much.
void forceKernels(const std::string& database, const std::string& suffix, std::size_t bytes = 0);

/// Adds an algorithm that runs on planes, the fastest, at each size that has one without workspace.
void forcePlanes(const std::string& database, std::size_t bytes);

}  // namespace ucudnn::test
