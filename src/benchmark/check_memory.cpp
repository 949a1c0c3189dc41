#include "benchmark/check_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "benchmark/random_values.hpp"
#include "benchmark/windows.hpp"

namespace ucudnn {
namespace {

// A number of such bytes is a NaN in every type that is planned.
constexpr int kNanByte = 0xFF;
// So many pieces of other work take some 0.2 ms, as long as a kernel that is worth splitting.
constexpr int kOtherWorks = 64;

}  // namespace

void CheckMemory::reserve(const Problem& problem, std::size_t workspaceBytes, bool repeats) {
  const std::size_t bytes = CheckLayout(problem, workspaceBytes, true, repeats).bytes;
  if (bytes <= bound_.bytes(block_.bytes())) reservedBytes_ = std::max(reservedBytes_, bytes);
}

/// Returns false if that much memory may not be taken, or is not there.
bool CheckMemory::hold(std::size_t bytes) {
  if (bytes <= block_.bytes()) return true;
  if (bytes > bound_.bytes(block_.bytes())) return false;
  block_ = {};
  isFilled_ = false;
  for (const std::size_t wanted : {std::max(bytes, reservedBytes_), bytes}) try {
      block_ = DeviceBuffer(wanted);
      return true;
    } catch (const OutOfMemory&) {
      reservedBytes_ = 0;
    }
  return false;
}

bool CheckMemory::prepare(const Problem& problem,
                          std::size_t workspaceBytes,
                          const std::vector<Window>& windows,
                          bool repeats) {
  CheckLayout layout(problem, workspaceBytes, windows.empty(), repeats);
  if (!hold(layout.bytes)) return false;
  layout_ = std::move(layout);
  if (!isFilled_ || !(problem == problem_)) {
    problem_ = problem;
    fill(windows);
  } else {
    const Region& output = layout_.output;
    fillWithNans(output.begin, output.end());
    fillWithNans(layout_.workspace.begin, layout_.kept.begin);
  }
  isFilled_ = false;  // until it is seen that the kernel has left it so
  return true;
}

void CheckMemory::fill(const std::vector<Window>& windows) {
  const void* copyOfBlock = nullptr;
  if (layout_.random.bytes > 0) {
    copyOfBlock = block_.get();
    UCUDNN_CHECK_CUDA(cudaMemcpyAsync(block_.get(),
                                      randomBlockOf(problem_.xType),
                                      kRandomBlockBytes,
                                      cudaMemcpyHostToDevice,
                                      stream_));
  }
  fillWithNans(layout_.random.end(), layout_.kept.begin);
  const auto fillInput = [&](const Region& region, RandomTensor tensor, std::int32_t type) {
    if (region.begin != layout_.output.begin)
      fillRandom(at(region.begin), region.bytes, tensor, type, stream_, copyOfBlock);
  };
  fillInput(layout_.x, RandomTensor::kX, problem_.xType);
  fillInput(layout_.w, RandomTensor::kW, problem_.wType);
  if (!windows.empty())
    fillWindows(at(layout_.y.begin), problem_, windows, stream_, copyOfBlock);
  else
    fillInput(layout_.y, RandomTensor::kY, problem_.yType);
  if (layout_.z.bytes > 0) fillInput(layout_.z, RandomTensor::kY, problem_.yType);
  if (layout_.bias.bytes > 0)
    UCUDNN_CHECK_CUDA(cudaMemsetAsync(at(layout_.bias.begin), 0, layout_.bias.bytes, stream_));
}

void CheckMemory::fillWithNans(std::size_t begin, std::size_t end) {
  UCUDNN_CHECK_CUDA(cudaMemsetAsync(at(begin), kNanByte, end - begin, stream_));
}

void CheckMemory::prepareSecondRun() {
  for (const Region& region : {layout_.output, layout_.workspace})
    UCUDNN_CHECK_CUDA(cudaMemsetAsync(at(region.begin), 0, region.bytes, stream_));
  if (others_ == nullptr) others_ = makeStream();
  const Event now = makeEvent();
  UCUDNN_CHECK_CUDA(cudaEventRecord(now.get(), stream_));
  UCUDNN_CHECK_CUDA(cudaStreamWaitEvent(others_.get(), now.get(), 0));
  for (int i = 0; i < kOtherWorks; ++i)
    UCUDNN_CHECK_CUDA(
        cudaMemsetAsync(at(layout_.others.begin), i, layout_.others.bytes, others_.get()));
}

Placement CheckMemory::place() const noexcept {
  const CheckLayout& to = layout_;
  Placement place;
  place.buffers = {
      at(to.x.begin), at(to.w.begin), at(to.y.begin), at(to.workspace.begin), to.workspace.bytes};
  place.bias = at(to.bias.begin);
  place.z = at(to.z.bytes > 0 ? to.z.begin : to.y.begin);
  place.samples = problem_.batch();
  return place;
}

void CheckMemory::keepOutputs(const OutputsToCheck& checked, Run run) {
  const std::size_t bytes = elementBytes(problem_.outputType());
  std::size_t to = layout_.kept.begin + static_cast<std::size_t>(run) * kKeptOutputBytes;
  for (const OutputLine& line : checked.lines) {
    UCUDNN_CHECK_CUDA(cudaMemcpy2DAsync(at(to),
                                        bytes,
                                        at(layout_.output.begin + line.first * bytes),
                                        std::max<std::size_t>(line.step, 1) * bytes,
                                        bytes,
                                        line.count,
                                        cudaMemcpyDeviceToDevice,
                                        stream_));
    to += line.count * bytes;
  }
}

void CheckMemory::read() {
  // One copy reads neighbouring pieces.
  std::size_t to = layout_.kept.begin + 2 * kKeptOutputBytes;
  const auto& pieces = layout_.pieces;
  for (std::size_t i = 0; i < pieces.size();) {
    Region region = pieces[i++].region;
    while (i < pieces.size() && pieces[i].region.begin == region.end())
      region.bytes += pieces[i++].region.bytes;
    UCUDNN_CHECK_CUDA(
        cudaMemcpyAsync(at(to), at(region.begin), region.bytes, cudaMemcpyDeviceToDevice, stream_));
    to += region.bytes;
  }
  read_.resize(layout_.kept.bytes);
  UCUDNN_CHECK_CUDA(cudaMemcpyAsync(
      read_.data(), at(layout_.kept.begin), read_.size(), cudaMemcpyDeviceToHost, stream_));
  UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream_));
  if (others_ != nullptr) UCUDNN_CHECK_CUDA(cudaStreamSynchronize(others_.get()));
}

const char* CheckMemory::outputs(Run run) const noexcept {
  return read_.data() + static_cast<std::size_t>(run) * kKeptOutputBytes;
}

std::string CheckMemory::whyElsewhere() {
  const char* bytes = read_.data() + 2 * kKeptOutputBytes;
  bool changesInputs = false;
  for (const CheckLayout::Piece& piece : layout_.pieces) {
    const std::size_t count = piece.region.bytes;
    if (piece.tensor)
      changesInputs =
          changesInputs || !areRandom(bytes, piece.offset, count, *piece.tensor, piece.type);
    else if (!std::all_of(bytes, bytes + count, [](char byte) {
               return static_cast<unsigned char>(byte) == kNanByte;
             }))
      return piece.name == nullptr ? "it writes before the filter"
                                   : fmt::format("it writes behind {}", piece.name);
    bytes += count;
  }
  if (changesInputs) return "it changes its inputs";
  isFilled_ = true;
  return {};
}

}  // namespace ucudnn
