// cuDNN's engines by themselves, as a client of its graph API would run them.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace ucudnn {
class BuiltKernel;
}

namespace ucudnn::tool {

class Convolution;
struct Tensors;

struct Engine {
  std::string name;
  std::size_t workspaceBytes = 0;
  std::shared_ptr<const BuiltKernel> kernel;
};

/// The fastest engine with so much workspace, among those that cuDNN's heuristics propose for the
/// convolution, whole and with its math type. Empty if none runs. Throws DeviceError.
std::optional<Engine> fastestEngine(cudnnHandle_t handle,
                                    cudaStream_t stream,
                                    const Convolution& convolution,
                                    const Tensors& tensors,
                                    std::size_t workspaceBytes);

/// Enqueues it, alpha 1, beta 0. Throws DeviceError.
void run(cudnnHandle_t handle,
         const Engine& engine,
         const Convolution& convolution,
         const Tensors& tensors,
         void* workspace);

}  // namespace ucudnn::tool
