// Where kernels come from. One that is added is planned, stored and run like the first: nobody else
// knows which there are.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/descriptors.hpp"
#include "kernels/kernel.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// Kernels of one kind. Thread-safe: it keeps no state that a call changes. It need not know its
/// own place: that is filled into what it returns.
class KernelSource {
 public:
  KernelSource() = default;
  KernelSource(const KernelSource&) = delete;
  KernelSource& operator=(const KernelSource&) = delete;
  virtual ~KernelSource() = default;

  /// All that it has for the problem that the descriptors describe. Asks on the host; runs nothing.
  /// `failures`, if not null, counts what could not be found out.
  virtual std::vector<KernelOffer> offers(cudnnHandle_t handle,
                                          const Problem& problem,
                                          const ConvolutionDescriptors& descriptors,
                                          int* failures) const = 0;
  /// The same for one kernel; empty where it does not have it.
  virtual std::optional<KernelOffer> offer(cudnnHandle_t handle,
                                           const Problem& problem,
                                           const ConvolutionDescriptors& descriptors,
                                           Kernel kernel,
                                           int* failures) const = 0;

  /// Throws Error. REQUIRES: the descriptors have the problem's values.
  virtual std::shared_ptr<const BuiltKernel> build(
      cudnnHandle_t handle,
      const Problem& problem,
      std::shared_ptr<const ProblemDescriptors> descriptors,
      Kernel kernel) const = 0;

  /// What the database and the log call the kernel: no other source's kernel has this text.
  virtual std::string text(Operation operation, Kernel kernel) const = 0;
  /// The reverse: a kernel that the problem may have, with what is known of it without asking.
  virtual std::optional<KernelOffer> parse(const Problem& problem, std::string_view text) const = 0;
};

/// Adds a source behind cuDNN's algorithms. REQUIRES: nothing has been planned yet.
void addKernelSource(std::unique_ptr<const KernelSource> source);

/// The functions of all sources, as above; of engines.hpp's only `withEngines`.
std::vector<KernelOffer> offeredKernels(cudnnHandle_t handle,
                                        const Problem& problem,
                                        const ConvolutionDescriptors& descriptors,
                                        bool withEngines,
                                        int* failures = nullptr);
std::optional<KernelOffer> offeredKernel(cudnnHandle_t handle,
                                         const Problem& problem,
                                         const ConvolutionDescriptors& descriptors,
                                         Kernel kernel,
                                         int* failures = nullptr);
std::shared_ptr<const BuiltKernel> buildKernel(
    cudnnHandle_t handle,
    const Problem& problem,
    std::shared_ptr<const ProblemDescriptors> descriptors,
    Kernel kernel);
std::string toText(Operation operation, Kernel kernel);
std::optional<KernelOffer> parseKernel(const Problem& problem, std::string_view text);

}  // namespace ucudnn
