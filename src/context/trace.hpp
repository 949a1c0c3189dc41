// Writes a line for each convolution call: UCUDNN_TRACE.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plan/call.hpp"
#include "plan/plan.hpp"

namespace ucudnn {

/// Why calls are left to cuDNN.
namespace reason {
constexpr const char* kUnknown = "a type, layout or dimension that is not planned";
constexpr const char* kUnknownZ = "z is not laid out as y, or a tensor is missing";
constexpr const char* kUnknownGraph = "a graph that is not split";
constexpr const char* kNotAsked = "the workspace of its plan was not asked for";
constexpr const char* kNotMeasured = "not measured yet";
constexpr const char* kOwnIsBest = "its own kernel is as fast";
constexpr const char* kRepeats = "its own kernel stays, so that results keep their bits";
constexpr const char* kTimed = "its own kernel is timed beside its plan";
constexpr const char* kNoPlan = "no kernel is known within the workspace";
constexpr const char* kNoShare = "no plan within its share of the total";
constexpr const char* kRefused = "cuDNN refuses a kernel of the plan";
constexpr const char* kFailed = "planning failed, which the log tells";
}  // namespace reason

/// How a call ran. Its context notes that on the way.
class CallRecord {
 public:
  /// Like Plan::Step, without what is built: a record may outlive its plan.
  struct Step {
    Kernel kernel;
    int batch, count;
    bool borrows;
  };

  const char* why = "";     ///< why it was left to cuDNN, never freed; "": it ran by its plan
  std::vector<Step> steps;  ///< the plan's; texts are made when they are read
  std::size_t workspaceBytes = 0;  ///< the plan's
  std::size_t grantedBytes = 0;
  double predictedMs = 0;
  double undividedMs = 0;  ///< of the fastest undivided kernel; 0: not known
  std::size_t undividedBytes = 0;
  double ownMs = 0;  ///< of the program's own kernel, as measured; 0: not known
  bool divided = false, replayed = false, measured = true;
  std::size_t beyondBytes = 0;  ///< the plan was left alone and told so much more than the cap

  bool isPlanned() const noexcept { return *why == '\0'; }
  std::string planText(Operation operation) const { return toText(operation, steps); }
  /// "108 + 2 x 74", the micro-batches without their kernels; "undivided"; "in parts".
  std::string splitText() const;

  /// Throws std::bad_alloc.
  void ran(const Plan& by, const ConvolutionCall& call, bool asGraph) {
    why = "";
    steps.clear();
    for (const Plan::Step& step : by.steps)
      steps.push_back({step.kernel, step.batch, step.count, step.borrows});
    workspaceBytes = by.workspaceBytes;
    grantedBytes = granted(call);
    predictedMs = by.predictedMs;
    undividedMs = by.undividedMs;
    undividedBytes = by.undividedBytes;
    ownMs = by.ownMs;
    divided = by.isDivided();
    replayed = asGraph;
    measured = by.measured;
    beyondBytes = 0;
  }
  void passed(const ConvolutionCall& call, const char* reason) noexcept {
    why = reason;
    grantedBytes = granted(call);
    beyondBytes = 0;
  }

 private:
  static std::size_t granted(const ConvolutionCall& call) noexcept {
    return call.pointers.grantedBytes();
  }
};

/// A file that lines are appended to. Thread-safe; takes no lock, so a forked child may write, too.
class TraceFile {
 public:
  /// "%p" in the path stands for the process id. Throws BadSetting if the file can't be opened.
  explicit TraceFile(std::string path);
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  void write(std::string_view line) noexcept;

 private:
  void open();
  bool isOurs(int descriptor) const noexcept;

  std::string path_;
  bool ofProcess_;  ///< the path has a %p
  std::atomic<int> descriptor_{-1};
  std::atomic<std::uint64_t> file_{0};  ///< the file's identity when it was opened
  std::atomic<int> process_{0};         ///< the process that opened it
};

/// The process's file for a path. Never closed. Throws BadSetting.
TraceFile& traceFile(const std::string& path);

/// "forward N=4 x=... | split, replayed | 2 x 2 FFT/fma | stream 0x0 | 1774080 of 2097152 bytes",
/// with tabs for the bars. `problem` is null if it could not be read. Throws std::bad_alloc.
std::string traceLine(Operation operation,
                      const Problem* problem,
                      const CallRecord& record,
                      cudaStream_t stream,
                      cudnnStatus_t status);

}  // namespace ucudnn
