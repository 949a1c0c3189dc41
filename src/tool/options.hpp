// The command line's options, as values.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "support/policies.hpp"
#include "support/settings.hpp"
#include "tool/convolution.hpp"
#include "tool/simulator_control.hpp"

namespace ucudnn::tool {

/// The options that `bench` and `plan` share. Settings of the environment are the defaults.
struct ConvolutionOptions {
  std::vector<std::string> files;
  std::vector<std::string> patterns;  ///< of layer names; empty: all
  int batchSize = 0;                  ///< 0: the files'
  std::vector<ucudnnOperation_t> operations = {
      UCUDNN_FORWARD, UCUDNN_BACKWARD_DATA, UCUDNN_BACKWARD_FILTER};
  Numerics numerics;
  std::string dataTypeName = "float", mathName = "tf32", layoutName = "nchw";
  std::size_t limitBytes = Settings().defaultWorkspaceLimitBytes;
  BatchSizePolicy policy = Settings().batchSizePolicy;
  Kernels kernels = Settings().kernels;
  Tuning tuning = Settings().tuning;
  double maxError = Settings().maxError;  ///< 0: none is stated
  bool accuracy = false;                  ///< of `plan`: what each error costs in time
  std::size_t graphMemoryBytes = Settings().graphMemoryBytes;  ///< 0: no call is replayed
  /// All layers as one network in one workspace total; 0: each by itself.
  std::size_t totalBytes = 0;
  std::size_t deviceBytes = 0;  ///< of `plan`: what placements are bounded within; 0: none are
  TotalWorkspacePolicy totalPolicy = Settings().totalWorkspacePolicy;
  int device = 0;
  std::optional<std::string> database;  ///< empty: the environment's; "": none
  bool verbose = false;                 ///< the table says more
  std::string jsonFile;                 ///< empty: none; "-": stdout, in the table's place
  std::string plansFile;                ///< of `plan`: the choices, for UCUDNN_PLANS; empty: none
  std::string lpFile;                   ///< of `plan` with a total: the division as a CPLEX LP file
};

/// The parts of a network that have their own stream.
enum class Streams { kOne, kOperation, kLayer };
const char* toText(Streams streams);

struct BenchOptions : ConvolutionOptions {
  std::vector<std::size_t> limitsBytes;  ///< each by itself; limitBytes is the first
  Streams streams = Streams::kOne;
  int repeats = 5;
  std::optional<Arithmetic> arithmetic;  ///< empty: auto
  bool check = true;
};

struct CheckOptions : ConvolutionOptions {
  double limitSeconds = 0;  ///< 0: as long as it takes
};

enum class DatabaseTask { kList, kExport, kImport, kMerge, kPrune };

struct DatabaseOptions {
  DatabaseTask task = DatabaseTask::kList;
  std::string database;             ///< UCUDNN_DATABASE
  std::string file;                 ///< import, export
  std::vector<std::string> others;  ///< merge
  bool forPlans = false;            ///< likewise
  bool verbose = false;             ///< list
  std::optional<int> olderThanDays;
  bool otherMachines = false;
  int device = 0;
};

/// The options that reports of bench and plan name.
nlohmann::ordered_json toJson(const ConvolutionOptions& options);

/// Gives a handle the policy and the memory for graphs. Throws DeviceError.
void configure(UcudnnHandle_t handle, const ConvolutionOptions& options);

/// For `--save`: finds out before the work begins whether the file can be written. Throws BadInput.
void expectWritablePlans(const ConvolutionOptions& options);
/// Writes the plans of this process there. Throws BadInput.
void savePlans(const ConvolutionOptions& options);

/// The names that options accept. Throw BadInput: "OPTION: \"...\" is none of ...".
cudnnDataType_t parseDataType(const std::string& text);
cudnnMathType_t parseMath(const std::string& text);
cudnnTensorFormat_t parseLayout(const std::string& text);
std::optional<Arithmetic> parseArithmetic(const std::string& text);
BatchSizePolicy parsePolicy(const std::string& text);
std::vector<ucudnnOperation_t> parseOperations(const std::string& text);
TotalWorkspacePolicy parseTotalPolicy(const std::string& text);
Streams parseStreams(const std::string& text);
Kernels parseKernels(const std::string& text);
Tuning parseTuning(const std::string& text);
bool parseReplay(const std::string& text);
double parseMaxError(const std::string& text);

}  // namespace ucudnn::tool
