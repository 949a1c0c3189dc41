// The interface of the simulated CUDA runtime (libcudart.so.13) for the simulated cuDNN
// (libcudnn.so.9): memory that is watched, streams with virtual clocks, device models, and the N-th
// call that fails.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#if defined(__GNUC__)
#define UCUDNN_SIMULATOR_API __attribute__((visibility("default")))
#endif

namespace ucudnn::simulator {

/// A device's properties; chosen by UCUDNN_SIMULATOR_DEVICES.
struct DeviceModel {
  std::string name;       ///< as in UCUDNN_SIMULATOR_DEVICES: "H200"
  int computeCapability;  ///< major * 10 + minor
  int multiprocessorCount;
  std::size_t memoryBytes;
  double fmaTeraflops;     ///< float, ordinary units, peak
  double tensorTeraflops;  ///< TF32 tensor cores, peak (0: none)
  double memoryGigabytesPerSecond;
  double launchMs;                ///< what each kernel costs beside its work
  double linkGigabytesPerSecond;  ///< pinned host memory, in each direction
  bool isReal = true;             ///< there is such a device, and times recorded on it
};

/// How much of a convolution is computed: UCUDNN_SIMULATOR_ARITHMETIC. `kTimed`: nothing, as with
/// `kOff`, but there is device code.
enum class Arithmetic { kFull, kSampled, kOff, kTimed };

/// The fate of engines that are compiled at run time.
enum class Compiling {
  kWorks,
  kHeld,   ///< whoever compiles waits until this changes
  kFails,  ///< INTERNAL_ERROR_COMPILATION_FAILED
};

/// How kernels round: UCUDNN_SIMULATOR_ROUNDING.
enum class Rounding {
  kExact,
  kMethods,  ///< as far off as a GPU's, each method by an error of its own
  kKernels,  ///< by some units in the last place, so that bits tell which kernel has run
};

/// What algorithms do with numbers of channels that are no multiple of 8.
enum class OddChannels {
  kComputed,
  kPadded,   ///< copies of the tensors need workspace
  kRefused,  ///< there is none for them
};

/// The fault that engines with odd numbers have: UCUDNN_SIMULATOR_LIES.
enum class Lie {
  kNone,
  kChannel,    ///< one channel of the output is off by 1e-2
  kRow,        ///< its last row
  kOdd,        ///< all of it, if its width is odd
  kGroups,     ///< all of it, if there are groups
  kOutput,     ///< four bytes behind the output are written
  kWorkspace,  ///< and behind the workspace
  kMore,       ///< 2 KiB behind the workspace: it needs more than it says
  kBits,       ///< other last bits while another stream works, though said to be deterministic
  kUnwritten,  ///< the last row is left as it is
  kFails,      ///< each call returns EXECUTION_FAILED
};

/// Memory that a piece of work touches: `rows` ranges of `bytes`, which begin `pitch` apart.
struct Access {
  const void* base;
  std::size_t bytes;
  bool write;
  std::size_t rows = 1;
  std::size_t pitch = 0;

  std::size_t extent() const { return rows == 0 ? 0 : (rows - 1) * pitch + bytes; }
};

/// Copies between host and device take turns at these, one for each direction. A copy within the
/// device is done by multiprocessors: it waits for a kernel that keeps them busy.
enum class CopyEngine { kNone = -1, kToDevice, kToHost, kMultiprocessors };

/// One or more kernels in a row: they advance the stream's clock by `durationMs` (the caller has
/// added launchMs for each). In a graph they take less.
struct Work {
  const char* name;
  double durationMs;
  std::function<void()>
      execute;  ///< the arithmetic; run in stream order, again at every graph launch
  /// Optional: what is checked against works on other streams. Two works that no event, capture
  /// edge or synchronization orders, one of which writes what the other touches, are a violation
  /// ("race").
  std::vector<Access> accesses = {};
  int launches = 1;     ///< of kernels: so many nodes of a real graph
  int filledWith = -1;  ///< a memset's value; -1: it is none
  CopyEngine engine = CopyEngine::kNone;
};

/// A live device allocation (without its guard zones).
struct Allocation {
  char* base;
  std::size_t bytes;
  int device;
};

/// For functions that allocate (cudnnCreate): while a capture forbids it to the calling thread,
/// that capture is void and the error is returned.
UCUDNN_SIMULATOR_API cudaError_t unsafeCall();

/// Runs `work` on the stream in order, or records it when the stream is being captured.
UCUDNN_SIMULATOR_API cudaError_t enqueue(cudaStream_t stream, Work work);

UCUDNN_SIMULATOR_API const DeviceModel& deviceModel(int device);
UCUDNN_SIMULATOR_API Arithmetic arithmetic();
inline bool isAnythingComputed() {
  return arithmetic() == Arithmetic::kFull || arithmetic() == Arithmetic::kSampled;
}

UCUDNN_SIMULATOR_API Rounding rounding();
UCUDNN_SIMULATOR_API Lie lie();
UCUDNN_SIMULATOR_API OddChannels oddChannels();

/// The seed of random kernel times; 0: the model's or the profile's times as they are.
UCUDNN_SIMULATOR_API std::uint64_t randomTimesSeed();

/// With the cost of measuring on (UCUDNN_SIMULATOR_MEASURING_COST): what a call takes of the
/// calling thread's virtual time beside what its name says. Nothing while it is off.
UCUDNN_SIMULATOR_API void hostSpends(double microseconds);

/// With the cost of measuring on: what enqueueing kernels on the
/// stream takes of the calling thread's virtual time; less where the stream is being captured.
/// Nothing while it is off.
UCUDNN_SIMULATOR_API void hostLaunches(cudaStream_t stream, double microseconds);

/// With the cost of measuring on: what loading takes, once for each `kernel` (any number that names
/// it) and device: CUDA loads a kernel's code when it is first launched.
UCUDNN_SIMULATOR_API void hostLoadsKernel(int device, std::uint64_t kernel);

/// What cuDNN's first answer about the algorithms of a cudnnDataType_t takes, once in the process;
/// nothing if the cost of measuring is off then.
UCUDNN_SIMULATOR_API void hostLoadsTables(int dataType);

/// The live allocation of any device that contains `pointer`; false when there is none.
UCUDNN_SIMULATOR_API bool findAllocation(const void* pointer, Allocation* allocation);

/// Whether [pointer, pointer + bytes) lies within one live allocation that the current device can
/// reach; if not, the violation is reported (see `reportViolation`) with `what` naming the
/// argument. bytes 0 is fine.
UCUDNN_SIMULATOR_API bool checkRange(const void* pointer, std::size_t bytes, const char* what);

/// Counts a misuse that a GPU would not notice, and prints it to stderr; with
/// UCUDNN_SIMULATOR_STRICT=abort (the tests' setting) aborts.
UCUDNN_SIMULATOR_API void reportViolation(const std::string& message);

/// Every simulated CUDA and cuDNN function calls this first; true when this is the call that
/// UCUDNN_SIMULATOR_FAIL_CALL or `failCall` chose. The caller then returns its error and does
/// nothing.
UCUDNN_SIMULATOR_API bool callFails(const char* function);

/// Counts live handles, descriptors, events, streams; the leak report at exit names the kinds that
/// are not 0.
UCUDNN_SIMULATOR_API void countHandle(const char* kind, int change);

// --- For tests
// -------------------------------------------------------------------------------------------
extern "C" {
/// Makes the n-th call from now fail (1: the next one; 0: none). Counts over all threads.
UCUDNN_SIMULATOR_API void ucudnnSimulatorFailCall(std::int64_t n);
/// Calls of CUDA and cuDNN functions since the process began, or of one function by name.
UCUDNN_SIMULATOR_API std::int64_t ucudnnSimulatorCallCount(const char* functionOrNull);
UCUDNN_SIMULATOR_API std::int64_t ucudnnSimulatorViolationCount();
UCUDNN_SIMULATOR_API std::int64_t ucudnnSimulatorLiveHandles(const char* kindOrNull);
/// All but cuDNN's descriptors, which are host memory only: what a library may keep for the
/// process.
UCUDNN_SIMULATOR_API std::int64_t ucudnnSimulatorLiveResources();
UCUDNN_SIMULATOR_API std::size_t ucudnnSimulatorLiveBytes(int device);
/// The most that was live at once since `ucudnnSimulatorStartPeak`, or since the process began.
UCUDNN_SIMULATOR_API std::size_t ucudnnSimulatorPeakBytes(int device);
UCUDNN_SIMULATOR_API void ucudnnSimulatorStartPeak(int device);
/// Limits what cudaMalloc can still hand out on a device (for out-of-memory tests).
UCUDNN_SIMULATOR_API void ucudnnSimulatorSetMemory(int device, std::size_t bytes);
UCUDNN_SIMULATOR_API void ucudnnSimulatorSetArithmetic(int arithmetic);
/// Whether that is "full": a program that compares outputs asks.
UCUDNN_SIMULATOR_API int ucudnnSimulatorComputesAll();
/// As UCUDNN_SIMULATOR_LIES: a Lie.
UCUDNN_SIMULATOR_API void ucudnnSimulatorSetLie(int lie);
/// As UCUDNN_SIMULATOR_ROUNDING: a Rounding.
UCUDNN_SIMULATOR_API void ucudnnSimulatorSetRounding(int rounding);
/// Sets what algorithms do with numbers of channels that are no multiple of 8 (an OddChannels), so
/// that parts of a problem can differ from others.
UCUDNN_SIMULATOR_API void ucudnnSimulatorSetOddChannels(int channels);
/// As UCUDNN_SIMULATOR_RANDOM_TIMES; 0: off.
UCUDNN_SIMULATOR_API void ucudnnSimulatorSetRandomTimes(std::uint64_t seed);
/// Scales the time of a finalized engine configuration with its graph, so that a program's own
/// kernel can be the fastest by far. (Exported by the simulated cuDNN.)
UCUDNN_SIMULATOR_API void ucudnnSimulatorScaleTime(void* configuration, double factor);
/// Sets the fate of engines that are compiled at run time from now on: a Compiling. (Exported by
/// the simulated cuDNN, like the next.)
UCUDNN_SIMULATOR_API void ucudnnSimulatorSetCompiling(int compiling);
/// How many are held now.
UCUDNN_SIMULATOR_API int ucudnnSimulatorHeldCompilations();
/// As UCUDNN_SIMULATOR_MEASURING_COST; 1 also forgets which kernels are loaded, as a new process
/// would.
UCUDNN_SIMULATOR_API void ucudnnSimulatorSetMeasuringCost(int on);
/// The calling thread's virtual time in ms: what a program's wall clock would show.
UCUDNN_SIMULATOR_API double ucudnnSimulatorHostClockMs();
/// A stream's virtual clock in ms.
UCUDNN_SIMULATOR_API double ucudnnSimulatorClock(cudaStream_t stream);
}

}  // namespace ucudnn::simulator
