#include "tool/rank_process.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <numeric>

#include "support/alignment.hpp"
#include "tool/device_data.hpp"
#include "tool/failure.hpp"
#include "tool/machine.hpp"
#include "tool/network.hpp"
#include "tool/partial_device.hpp"
#include "tool/step_planner.hpp"
#include "tool/timing.hpp"
#include "tool/trainer.hpp"

namespace ucudnn::tool {
namespace {

int multiprocessorsOf(int device) {
  int count = 0;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
        "cudaDeviceGetAttribute");
  return count;
}

class Rank {
 public:
  Rank(const RankMemory& memory,
       int rank,
       const RankOptions& own,
       const std::vector<Layer>& layers,
       const ConvolutionOptions& options)
      : own_(own), layers_(layers), options_(options) {
    useDevice(own.device, "--devices");
    if (own.multiprocessors > 0 && own.multiprocessors != multiprocessorsOf(own.device)) {
      part_ = std::make_unique<PartialDevice>(own.device, own.multiprocessors);
      options_.graphMemoryBytes = 0;  // graphs would run on all multiprocessors
    } else {
      whole_ = makeStream();
    }
    handles_ = std::make_unique<Handles>(stream());
    check(handles_->ours().setTotalWorkspaceSize(0), "ucudnnSetTotalWorkspaceSize");
    configure(handles_->ours(), options_);
    // The database can't tell a part of a device from the whole.
    if (part_) check(handles_->ours().setDatabase(""), "ucudnnSetDatabase");
    workspace_ = DeviceBuffer(own.limitBytes);
    gradients_ = DeviceBuffer(memory.bytes());
    check(cudaMemsetAsync(gradients_.get(), 0, gradients_.bytes(), stream()), "cudaMemsetAsync");
    begin_ = makeEvent();
    end_ = makeEvent();
    sum_ = makeGradientSum(memory, rank, options.numerics.dataType);
  }

  RankAnswer answer(const RankQuestion& question) {
    RankAnswer answer;
    if (question.what == RankQuestion::What::kDescribe) {
      const std::string model = describeDevice(own_.device).at("device");
      answer.multiprocessors = part_ ? part_->multiprocessors() : 0;
      std::snprintf(answer.text, sizeof answer.text, "%s\n%s", model.c_str(), sum_->name().c_str());
    } else if (question.what == RankQuestion::What::kPlan) {
      const StepPlan plan =
          planStep(handles_->ours(), layers_, options_, own_.limitBytes, question.samples);
      answer.ms = plan.ms;
      answer.workspaceBytes = plan.workspaceBytes;
    } else {
      answer.ms = run(question);
    }
    return answer;
  }

 private:
  cudaStream_t stream() const { return part_ ? part_->stream() : whole_.get(); }

  /// Runs steps behind one that is not counted. That one aligns the ranks, because it ends with an
  /// exchange.
  double run(const RankQuestion& question) {
    const Network* const network = question.samples > 0 ? &prepare(question.samples) : nullptr;
    const auto step = [&] {
      if (network != nullptr) convolve(*network);
      if (question.exchanges) sum_->add(gradients_.get(), stream());
    };
    step();
    check(cudaEventRecord(begin_.get(), stream()), "cudaEventRecord");
    for (int i = 0; i < question.steps; ++i) step();
    check(cudaEventRecord(end_.get(), stream()), "cudaEventRecord");
    check(cudaEventSynchronize(end_.get()), "cudaEventSynchronize");
    float elapsedMs = 0;
    check(cudaEventElapsedTime(&elapsedMs, begin_.get(), end_.get()), "cudaEventElapsedTime");
    restDevice(static_cast<double>(elapsedMs));
    return static_cast<double>(elapsedMs) / question.steps;
  }

  /// The network with so many samples. All share the tensors of the largest one.
  const Network& prepare(int samples) {
    std::unique_ptr<Network>& network = networks_[samples];
    if (!network) network = std::make_unique<Network>(withBatch(layers_, samples), options_);
    if (samples > samplesOfData_) {
      data_.reset();
      data_ = std::make_unique<NetworkData>(*network);
      samplesOfData_ = samples;
    }
    return *network;
  }

  void convolve(const Network& network) const {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < network.size(); ++i) {
      const Convolution& convolution = network.convolution(i);
      void* output = data_->outputs[convolution.operation()].get();
      if (convolution.operation() == UCUDNN_BACKWARD_FILTER) {
        output = static_cast<char*>(gradients_.get()) + offset;
        offset += roundUpToAlignment(convolution.wBytes());
      }
      tool::run(handles_->ours(),
                convolution,
                data_->tensors,
                0,
                {workspace_.get(), workspace_.bytes()},
                output);
    }
  }

  const RankOptions own_;
  const std::vector<Layer>& layers_;
  ConvolutionOptions options_;
  std::unique_ptr<PartialDevice> part_;
  Stream whole_;
  std::unique_ptr<Handles> handles_;
  DeviceBuffer workspace_, gradients_;
  std::unique_ptr<GradientSum> sum_;
  std::map<int, std::unique_ptr<Network>> networks_;  ///< by samples
  std::unique_ptr<NetworkData> data_;
  int samplesOfData_ = 0;
  Event begin_, end_;  ///< of the device, which is chosen first
};

/// An exception becomes the reply.
RankReply replyOf(const std::function<RankAnswer()>& answer) {
  RankReply reply;
  const auto fail = [&](RankReply::Status status, const char* why) {
    reply.status = status;
    std::snprintf(reply.answer.text, sizeof reply.answer.text, "%s", why);
  };
  try {
    reply.answer = answer();
  } catch (const BadInput& error) {
    fail(RankReply::Status::kBadInput, error.what());
  } catch (const std::exception& error) {
    fail(RankReply::Status::kDeviceError, error.what());
  }
  return reply;
}

}  // namespace

std::size_t gradientBytesOf(const std::vector<Layer>& layers, const Numerics& numerics) {
  std::size_t bytes = 0;
  for (const Layer& layer : layers) {
    const std::vector<int> sizes = layer.filterSizes();
    const std::size_t elements = std::accumulate(
        sizes.begin(), sizes.end(), std::size_t{1}, [](std::size_t product, int size) {
          return product * static_cast<std::size_t>(size);
        });
    const cudnnDataType_t type =
        layer.dataType.empty() ? numerics.dataType : parseDataType(layer.dataType);
    bytes += roundUpToAlignment(elements * elementBytes(type));
  }
  return bytes;
}

void serveRank(int socket,
               const RankMemory& memory,
               int rank,
               const RankOptions& own,
               const std::vector<Layer>& layers,
               const ConvolutionOptions& options) {
  std::unique_ptr<Rank> served;
  RankQuestion question;
  while (recv(socket, &question, sizeof question, 0) == sizeof question) {
    const RankReply reply = replyOf([&] {
      if (!served) served = std::make_unique<Rank>(memory, rank, own, layers, options);
      return served->answer(question);
    });
    if (send(socket, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply) return;
  }
}

}  // namespace ucudnn::tool
