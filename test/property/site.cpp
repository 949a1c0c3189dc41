#include "site.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "../support/simulator.hpp"

namespace ucudnn::test {
namespace {

class NativeHandle {
 public:
  NativeHandle() {
    if (cudnnCreate(&handle_) != CUDNN_STATUS_SUCCESS) throw std::runtime_error("cudnnCreate");
  }
  ~NativeHandle() { cudnnDestroy(handle_); }
  NativeHandle(const NativeHandle&) = delete;
  NativeHandle& operator=(const NativeHandle&) = delete;
  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

int algorithmCount(ucudnnOperation_t operation) {
  if (operation == UCUDNN_BACKWARD_DATA) return CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
  if (operation == UCUDNN_BACKWARD_FILTER) return CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
  return CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
}

bool isNarrow(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}

}  // namespace

Site::Site(const ProblemChoice& choice, ucudnnOperation_t operation, int device)
    : choice_(choice), operation_(operation), device_(device), convolution_(choice.convolution) {
  if (operation == UCUDNN_BIAS_ACTIVATION_FORWARD)
    fused_ = std::make_unique<Fused>(convolution_, choice.activation);
  for (const ucudnnOperation_t of : kOperations) initial_[of] = convolution_.output(of).read();
  // With beta 0 the output is not read: what lies in it must not matter.
  const bool read = fused_ ? choice.zInPlace : choice.beta != 0;
  if (!read) {
    convolution_.output(operation).poison();
    initial_[fused_ ? UCUDNN_FORWARD : operation] = convolution_.output(operation).read();
  }
  if (fused_) initial_[3] = fused_->z().read();
  const NativeHandle native;
  askPlainCudnn(native.get());
}

cudnnStatus_t Site::tryPlainCudnn(cudnnHandle_t native,
                                  int algorithm,
                                  std::size_t bytes,
                                  bool fused) {
  const DeviceBuffer workspace(bytes);
  const Workspace granted{workspace.get(), bytes};
  if (fused) return run(native, algorithm, granted);
  return convolution_.run(native, operation_, algorithm, granted, choice_.alpha, choice_.beta);
}

void Site::askPlainCudnn(cudnnHandle_t native) {
  queried_.resize(static_cast<std::size_t>(algorithmCount(operation_)));
  std::vector<Performance> answers;
  const int count = static_cast<int>(queried_.size());
  convolution_.query(native, operation_, Query::kGet, count, &answers);
  for (const Performance& answer : answers)
    queried_[static_cast<std::size_t>(answer.algorithm)].deterministic =
        answer.determinism == CUDNN_DETERMINISTIC;
  setArithmetic(Arithmetic::kOff);  // only what the calls answer is wanted
  for (int i = 0; i < count; ++i) {
    Algorithm& algorithm = queried_[static_cast<std::size_t>(i)];
    algorithm.status = convolution_.workspaceSize(native, operation_, i, &algorithm.bytes);
    if (algorithm.status == CUDNN_STATUS_SUCCESS)
      algorithm.status = tryPlainCudnn(native, i, algorithm.bytes, false);
  }
  algorithms_ = queried_;
  for (int i = 0; fused_ && i < count; ++i) {
    Algorithm& algorithm = algorithms_[static_cast<std::size_t>(i)];
    if (algorithm.status == CUDNN_STATUS_SUCCESS)
      algorithm.status = tryPlainCudnn(native, i, algorithm.bytes, true);
  }
  setArithmetic(Arithmetic::kFull);
  restore();
  for (int i = 0; i < count && expected_.empty(); ++i) {  // they all compute the same
    const Algorithm& algorithm = algorithms_[static_cast<std::size_t>(i)];
    if (algorithm.status != CUDNN_STATUS_SUCCESS) continue;
    if (tryPlainCudnn(native, i, algorithm.bytes, fused_ != nullptr) == CUDNN_STATUS_SUCCESS)
      expected_ = convolution_.output(operation_).read();
  }
  restore();
}

std::string Site::text() const {
  std::ostringstream text;
  text << toText(operation_) << " of \"" << choice_.convolution.serialized() << "\" alpha "
       << choice_.alpha << " beta " << choice_.beta << " on device " << device_;
  if (fused_) text << " activation " << choice_.activation << (choice_.zInPlace ? " z=y" : "");
  return text.str();
}

bool Site::runsWithin(std::size_t bytes, bool deterministic) const {
  return std::any_of(algorithms_.begin(), algorithms_.end(), [&](const Algorithm& algorithm) {
    return algorithm.status == CUDNN_STATUS_SUCCESS && algorithm.bytes <= bytes &&
           (algorithm.deterministic || !deterministic);
  });
}

std::size_t Site::interestingBytes(Random& random) const {
  const std::size_t need = random.pick(algorithms_).bytes;
  const std::size_t rounded = (need + 511) / 512 * 512;
  const auto part = static_cast<std::size_t>(random.between(2, 12));
  return random.pick<std::size_t>({0,
                                   1,
                                   511,
                                   512,
                                   1024,
                                   need,
                                   need > 0 ? need - 1 : 0,
                                   rounded,
                                   rounded / part,
                                   rounded / 2 + 512,
                                   rounded * 3,
                                   std::size_t{1} << 20});
}

template <typename Handle>
cudnnStatus_t Site::run(Handle handle, int algorithm, Workspace workspace) {
  if (fused_)
    return fused_->run(handle, algorithm, workspace, choice_.alpha, choice_.beta, choice_.zInPlace);
  return convolution_.run(handle, operation_, algorithm, workspace, choice_.alpha, choice_.beta);
}
template cudnnStatus_t Site::run(cudnnHandle_t, int, Workspace);
template cudnnStatus_t Site::run(UcudnnHandle_t, int, Workspace);

void Site::restore() {
  for (const ucudnnOperation_t of : kOperations) convolution_.output(of).write(initial_[of]);
  if (fused_) fused_->z().write(initial_[3]);
  if (cudaDeviceSynchronize() != cudaSuccess) throw std::runtime_error("cudaDeviceSynchronize");
}

std::string Site::difference() {
  const ucudnnOperation_t written = fused_ ? UCUDNN_FORWARD : operation_;
  for (const ucudnnOperation_t of : kOperations)
    if (of != written && convolution_.output(of).read() != initial_[of])
      return std::string("an input was overwritten (the output of ") + toText(of) + ")";
  if (fused_ && fused_->z().read() != initial_[3]) return "z was overwritten";
  const std::vector<char> result = convolution_.output(operation_).read();
  return result == expected_ ? std::string() : resultDifference(result);
}

/// Forward and backward data are computed alike however the batch is split: on the simulator, to
/// the bit, unless they add.
std::string Site::resultDifference(const std::vector<char>& result) {
  if (operation_ == UCUDNN_BACKWARD_FILTER) return sumDifference(result);
  const double far = distance(convolution_.geometry(operation_), result, expected_);
  // A copy from blocks rounds before it adds to floats.
  constexpr double kRounding = 1e-6;
  const bool addsFloats = choice_.beta != 0 && choice_.convolution.type == CUDNN_DATA_FLOAT;
  if (addsFloats && far > 0 && far < kRounding) return {};
  return "the result is off by " + std::to_string(far) + " (0: in a gap between samples)";
}

/// A split filter gradient is summed in another order: its error stays within that of a sum in the
/// compute type; in half and bfloat16 it is no further from exact than cuDNN's own.
std::string Site::sumDifference(const std::vector<char>& result) {
  const cudnnDataType_t type = choice_.convolution.type;
  const std::vector<double> sums = convolution_.sumsOnHost(operation_);
  const std::vector<double> magnitudes = convolution_.sumsOnHost(operation_, true);
  const std::vector<double> before = toDoubles(type, initial_[operation_]);
  const std::vector<double> plain = toDoubles(type, expected_);
  const std::vector<double> ours = toDoubles(type, result);
  const double unit =
      type == CUDNN_DATA_DOUBLE ? 0x1p-52 * static_cast<double>(sums.size() + 4096) : 0x1p-23;
  double ourSquares = 0, plainSquares = 0, roundingSquares = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double old = choice_.beta == 0 ? 0 : choice_.beta * before[i];
    const double exact = choice_.alpha * sums[i] + old;
    const double rounding = unit * (choice_.convolution.batch + 2) *
                            (std::abs(choice_.alpha) * magnitudes[i] + std::abs(old));
    if (!isNarrow(type) && !(std::abs(ours[i] - exact) <= rounding))
      return "element " + std::to_string(i) + " of the filter gradient is " +
             std::to_string(ours[i]) + ", not " + std::to_string(exact);
    ourSquares += (ours[i] - exact) * (ours[i] - exact);
    plainSquares += (plain[i] - exact) * (plain[i] - exact);
    roundingSquares += rounding * rounding;
  }
  if (!isNarrow(type)) return {};
  const double mine = std::sqrt(ourSquares), cudnns = std::sqrt(plainSquares);
  if (mine <= cudnns + 2 * std::sqrt(roundingSquares)) return {};
  return "the filter gradient is " + std::to_string(mine) + " from exact, cuDNN's " +
         std::to_string(cudnns);
}

}  // namespace ucudnn::test
