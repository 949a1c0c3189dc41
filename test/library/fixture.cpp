#include "fixture.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "../support/checked.hpp"
#include "../support/simulator.hpp"

namespace ucudnn::test {
namespace {

// Indexed by cuDNN's enumerators, as ucudnnMicroBatches_t::kernel names them.
const std::vector<std::string>& algorithmNames(ucudnnOperation_t operation) {
  static const std::vector<std::string> forward = {"IMPLICIT_GEMM",
                                                   "IMPLICIT_PRECOMP_GEMM",
                                                   "GEMM",
                                                   "DIRECT",
                                                   "FFT",
                                                   "FFT_TILING",
                                                   "WINOGRAD",
                                                   "WINOGRAD_NONFUSED"};
  static const std::vector<std::string> backwardData = {
      "ALGO_0", "ALGO_1", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"};
  static const std::vector<std::string> backwardFilter = {
      "ALGO_0", "ALGO_1", "FFT", "ALGO_3", "WINOGRAD", "WINOGRAD_NONFUSED", "FFT_TILING"};
  if (operation == UCUDNN_BACKWARD_DATA) return backwardData;
  return operation == UCUDNN_BACKWARD_FILTER ? backwardFilter : forward;
}

template <typename Entry, typename Ask>
cudnnStatus_t askTwice(std::vector<Entry>* entries, Ask ask) {
  int count = 0;
  const cudnnStatus_t status = ask(0, &count, nullptr);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  entries->resize(static_cast<std::size_t>(count));
  if (count > 0) entries->front().size = sizeof(Entry);
  return ask(count, &count, entries->data());
}

}  // namespace

const char* toText(ucudnnOperation_t operation) {
  static const char* const names[] = {"forward", "backward data", "backward filter", "fused"};
  return names[operation];
}

std::string ConvolutionCase::serialized() const {
  std::ostringstream text;
  text << name << ';' << type << ' ' << math << ' ' << format << ' ' << batch << ' ' << channels
       << ' ' << filters << ' ' << groups << ' ' << parts << ' ' << batchGap << ' ' << mode << ' '
       << input.size();
  for (const auto* list : {&input, &filter, &pad, &stride, &dilation})
    for (const int number : *list) text << ' ' << number;
  return text.str();
}

ConvolutionCase ConvolutionCase::parse(const std::string& text) {
  ConvolutionCase result;
  const std::size_t end = text.find(';');
  result.name = text.substr(0, end);
  std::istringstream numbers(text.substr(end + 1));
  int type = 0, math = 0, format = 0, mode = 0;
  std::size_t spatial = 0;
  numbers >> type >> math >> format >> result.batch >> result.channels >> result.filters >>
      result.groups >> result.parts >> result.batchGap >> mode >> spatial;
  result.type = static_cast<cudnnDataType_t>(type);
  result.math = static_cast<cudnnMathType_t>(math);
  result.format = static_cast<cudnnTensorFormat_t>(format);
  result.mode = static_cast<cudnnConvolutionMode_t>(mode);
  for (auto* list :
       {&result.input, &result.filter, &result.pad, &result.stride, &result.dilation}) {
    list->resize(spatial);
    for (int& number : *list) numbers >> number;
  }
  if (!numbers) throw std::invalid_argument("not a convolution: " + text);
  return result;
}

std::ostream& operator<<(std::ostream& stream, const ConvolutionCase& convolution) {
  return stream << convolution.name;
}

ConvolutionCase fftCase(int channels) {
  ConvolutionCase result;
  result.name = "fft";
  result.batch = 4;
  result.channels = channels;
  result.filters = 2;
  result.input = {12, 12};
  result.filter = {5, 5};
  result.pad = {2, 2};  // 16 with padding: the transform has no waste
  return result;
}

ConvolutionCase splitFrontCase() {
  ConvolutionCase result = fftCase(384);
  result.name = "splitFront";
  return result;
}

ConvolutionCase largeCase(int channels) {
  ConvolutionCase result;
  result.name = "large";
  result.batch = 64;
  result.channels = channels;
  result.filters = 64;
  result.input = {56, 56};
  result.filter = {3, 3};
  result.pad = {1, 1};
  return result;
}

double tolerance(const ConvolutionCase& convolution) {
  switch (convolution.type) {
    case CUDNN_DATA_DOUBLE:
      return 1e-12;
    case CUDNN_DATA_HALF:
      return 2e-3;  // two units of the 11-bit mantissa
    case CUDNN_DATA_BFLOAT16:
      return 2e-2;  // two units of the 8-bit mantissa
    default:
      return convolution.math == CUDNN_FMA_MATH ? 1e-6 : 1e-3;  // TF32: an 11-bit mantissa
  }
}

double toleranceBetweenAlgorithms() {
  return onSimulator() ? 1e-6 : 5e-3;
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes > 0) check(cudaMalloc(&memory_, bytes));
}
DeviceBuffer::~DeviceBuffer() {
  cudaFree(memory_);
}
void DeviceBuffer::write(const std::vector<char>& from) {
  if (from.size() != bytes_) throw std::invalid_argument("wrong size");
  check(cudaMemcpy(memory_, from.data(), bytes_, cudaMemcpyHostToDevice));
}
std::vector<char> DeviceBuffer::read() const {
  std::vector<char> to(bytes_);
  check(cudaDeviceSynchronize());
  check(cudaMemcpy(to.data(), memory_, bytes_, cudaMemcpyDeviceToHost));
  return to;
}
void DeviceBuffer::poison() {
  check(cudaMemset(memory_, 0xFF, bytes_));
  check(cudaDeviceSynchronize());
}

std::unique_ptr<DeviceBuffer> Convolution::exchange(ucudnnOperation_t operation,
                                                    std::unique_ptr<DeviceBuffer> buffer) {
  auto& place = operation == UCUDNN_BACKWARD_DATA     ? x_
                : operation == UCUDNN_BACKWARD_FILTER ? w_
                                                      : y_;
  if (buffer->bytes() != place->bytes()) throw std::invalid_argument("wrong size");
  place.swap(buffer);
  return buffer;
}

cudnnStatus_t Convolution::queryPreferred(UcudnnHandle_t handle,
                                          ucudnnOperation_t operation,
                                          int preference,
                                          std::size_t limitBytes,
                                          int* algorithm) const {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  if (operation == UCUDNN_BACKWARD_DATA) {
    cudnnConvolutionBwdDataAlgo_t found = {};
    const auto how = static_cast<cudnnConvolutionBwdDataPreference_t>(preference);
    status = cudnnGetConvolutionBackwardDataAlgorithm(handle,
                                                      descriptors_.w,
                                                      descriptors_.y,
                                                      descriptors_.convolution,
                                                      descriptors_.x,
                                                      how,
                                                      limitBytes,
                                                      &found);
    *algorithm = found;
  } else if (operation == UCUDNN_BACKWARD_FILTER) {
    cudnnConvolutionBwdFilterAlgo_t found = {};
    const auto how = static_cast<cudnnConvolutionBwdFilterPreference_t>(preference);
    status = cudnnGetConvolutionBackwardFilterAlgorithm(handle,
                                                        descriptors_.x,
                                                        descriptors_.y,
                                                        descriptors_.convolution,
                                                        descriptors_.w,
                                                        how,
                                                        limitBytes,
                                                        &found);
    *algorithm = found;
  } else {
    cudnnConvolutionFwdAlgo_t found = {};
    const auto how = static_cast<cudnnConvolutionFwdPreference_t>(preference);
    status = cudnnGetConvolutionForwardAlgorithm(handle,
                                                 descriptors_.x,
                                                 descriptors_.w,
                                                 descriptors_.convolution,
                                                 descriptors_.y,
                                                 how,
                                                 limitBytes,
                                                 &found);
    *algorithm = found;
  }
  return status;
}

cudnnStatus_t Convolution::plan(UcudnnHandle_t handle,
                                ucudnnOperation_t operation,
                                std::size_t limitBytes,
                                ucudnnPlan_t* plan,
                                std::vector<ucudnnMicroBatches_t>* entries) const {
  plan->size = sizeof(*plan);
  return askTwice(entries, [&](int requested, int* count, ucudnnMicroBatches_t* to) {
    return ucudnnGetConvolutionPlan(handle,
                                    operation,
                                    descriptors_.x,
                                    descriptors_.w,
                                    descriptors_.convolution,
                                    descriptors_.y,
                                    limitBytes,
                                    plan,
                                    requested,
                                    count,
                                    to);
  });
}

cudnnStatus_t Convolution::front(UcudnnHandle_t handle,
                                 ucudnnOperation_t operation,
                                 std::vector<ucudnnParetoPoint_t>* points) const {
  return askTwice(points, [&](int requested, int* count, ucudnnParetoPoint_t* to) {
    return ucudnnGetConvolutionParetoFront(handle,
                                           operation,
                                           descriptors_.x,
                                           descriptors_.w,
                                           descriptors_.convolution,
                                           descriptors_.y,
                                           requested,
                                           count,
                                           to);
  });
}

std::optional<std::vector<char>> Convolution::undivided(
    cudnnHandle_t native, ucudnnOperation_t operation, int algorithm, double alpha, double beta) {
  std::size_t bytes = 0;
  if (workspaceSize(native, operation, algorithm, &bytes) != CUDNN_STATUS_SUCCESS)
    return std::nullopt;
  DeviceBuffer workspace(bytes);
  const std::vector<char> before = output(operation).read();
  const cudnnStatus_t status =
      run(native, operation, algorithm, {workspace.get(), bytes}, alpha, beta);
  const std::vector<char> result = output(operation).read();
  output(operation).write(before);
  if (status != CUDNN_STATUS_SUCCESS) return std::nullopt;
  return result;
}

int microBatchCount(const std::vector<ucudnnMicroBatches_t>& entries) {
  int count = 0;
  for (const ucudnnMicroBatches_t& entry : entries) count += entry.count;
  return count;
}

std::string textOf(const std::vector<ucudnnMicroBatches_t>& entries) {
  std::ostringstream text;
  for (const ucudnnMicroBatches_t& entry : entries)
    text << entry.count << " x " << entry.batch << ' ' << entry.kernel << ' ';
  return text.str();
}

std::optional<int> commonAlgorithm(ucudnnOperation_t operation,
                                   const std::vector<ucudnnMicroBatches_t>& entries) {
  const std::string first = entries.at(0).kernel;
  for (const ucudnnMicroBatches_t& entry : entries)
    if (entry.kernel != first) return std::nullopt;
  const auto& names = algorithmNames(operation);
  const auto place = std::find(names.begin(), names.end(), first.substr(0, first.find('/')));
  if (place == names.end()) throw std::runtime_error("no algorithm of cuDNN's: " + first);
  return static_cast<int>(place - names.begin());
}

ucudnnStatistics_t statistics() {
  ucudnnStatistics_t result{};
  result.size = sizeof(result);
  EXPECT_CUDNN(ucudnnGetStatistics(&result));
  return result;
}

Handles::Handles() {
  EXPECT_CUDNN(cudnnCreate(&ours));
  EXPECT_CUDNN(cudnnCreate(&native));
}
Handles::~Handles() {
  EXPECT_CUDNN(cudnnDestroy(ours));
  EXPECT_CUDNN(cudnnDestroy(native));
}

EnvironmentGuard::EnvironmentGuard(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables) {
    const char* const former = std::getenv(name.c_str());
    former_[name] = former != nullptr ? std::optional<std::string>(former) : std::nullopt;
    ::setenv(name.c_str(), value.c_str(), 1);
  }
}
EnvironmentGuard::EnvironmentGuard(const std::string& variable, const std::string& value)
    : EnvironmentGuard(std::map<std::string, std::string>{{variable, value}}) {}
EnvironmentGuard::~EnvironmentGuard() {
  for (const auto& [name, value] : former_) {
    if (value)
      ::setenv(name.c_str(), value->c_str(), 1);
    else
      ::unsetenv(name.c_str());
  }
}

std::vector<std::string> linesWith(const std::string& path, const std::vector<std::string>& words) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (std::all_of(words.begin(), words.end(), [&](const std::string& word) {
          return line.find(word) != std::string::npos;
        }))
      lines.push_back(line);
  return lines;
}

void LibraryTest::SetUp() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0)
    GTEST_SKIP() << "no CUDA device: " << cudaGetErrorString(error);
}

void LibraryTest::TearDown() {
  setArithmetic(Arithmetic::kFull);
  setMemory(0, std::size_t{100} << 30);  // more than any test needs
  EXPECT_EQ(0, violationCount());
}

}  // namespace ucudnn::test
