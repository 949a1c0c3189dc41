// The sources of kernels. A source that is added is planned, stored and run like the others: no
// other module knows which sources there are.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/descriptors.hpp"
#include "kernels/kernel.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// One kernel for one problem, before it runs. The descriptors that cuDNN needs to answer a query
/// also serve to build the kernel, so they are made once. Not thread-safe.
class PreparedKernel {
 public:
  PreparedKernel() = default;
  PreparedKernel(const PreparedKernel&) = delete;
  PreparedKernel& operator=(const PreparedKernel&) = delete;
  virtual ~PreparedKernel() = default;

  /// The kernel's needs and promises; empty if the source does not have the kernel. Asks on the
  /// host; runs nothing. `failures` as in KernelSource::offers.
  virtual std::optional<KernelOffer> offer(int* failures) = 0;
  /// Throws Error.
  virtual std::shared_ptr<const BuiltKernel> build() = 0;

  /// The same for calls that overwrite their output. Does not ask about other calls, which may need
  /// more workspace.
  virtual std::optional<KernelOffer> offerToOverwrite(int* failures) { return offer(failures); }
  virtual std::shared_ptr<const BuiltKernel> buildToOverwrite() { return build(); }
};

/// Asks what one kernel of a known problem needs, as PreparedKernel::offer does.
using AskKernel = std::function<std::optional<KernelOffer>(Kernel, int* failures)>;

/// Kernels of one kind. Thread-safe: no call changes its state. A source need not know its own
/// place: the functions below fill it into what the source returns.
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
  /// The same for calls that overwrite their output: some kernels can't add to it.
  virtual std::vector<KernelOffer> offersToOverwrite(cudnnHandle_t handle,
                                                     const Problem& problem,
                                                     const ConvolutionDescriptors& descriptors,
                                                     int* failures) const {
    return offers(handle, problem, descriptors, failures);
  }
  /// Whether it computes a large problem (Problem::isLarge) in parts that are not.
  virtual bool divides(const Problem&, Kernel) const { return false; }
  /// The kernel that computes the problem in parts of its samples and that cuDNN expects to be the
  /// fastest of these. Empty if there is none.
  virtual std::optional<KernelOffer> offerInBands(cudnnHandle_t,
                                                  const Problem&,
                                                  const OfferBounds&,
                                                  int* /*failures*/) const {
    return std::nullopt;
  }
  /// The undivided kernel that cuDNN expects to be the fastest, if it needs no compiler; for one
  /// sample, one of its first few. `orNext`: or the next that keeps to the bounds. Empty if there
  /// is none.
  virtual std::optional<KernelOffer> offerFirst(
      cudnnHandle_t, const Problem&, const OfferBounds&, bool /*orNext*/, int* /*failures*/) const {
    return std::nullopt;
  }
  /// As offerInBands, of the kernels that run on our copies of the tensors, if these gain:
  /// blocks of pixels that have few channels, and copies in place of those that the client's own
  /// kernel makes. `own`: that kernel, if copiesTensors. `ask` keeps what it makes for the caller's
  /// next question. Empty: a smaller batch may have one. Throws Error: no batch has one
  /// (isRefusal), or that can't be found out now.
  virtual std::optional<KernelOffer> offerOnCopies(cudnnHandle_t,
                                                   const Problem&,
                                                   std::optional<Kernel> /*own*/,
                                                   const OfferBounds&,
                                                   const AskKernel& /*ask*/) const {
    return std::nullopt;
  }
  /// Whether the kernel, which needs so much workspace for the problem, copies x and y.
  virtual bool copiesTensors(const Problem&, Kernel, std::size_t /*workspaceBytes*/) const {
    return false;
  }
  /// Bytes of the kernel's workspace for what we copy, whatever cuDNN needs. Throws Error: it can't
  /// run the problem.
  virtual std::size_t copiedBytes(const Problem&, Kernel) const { return 0; }
  /// Bytes of the kernel's workspace that hold a copy of its output, which may lie anywhere
  /// (ConvolutionPointers::outputCopy). Throws Error.
  virtual std::size_t outputCopyBytes(const Problem&, Kernel) const { return 0; }
  /// The first `most` kernels that cuDNN's heuristics name within `limitBytes` and that are built
  /// without a compiler, the first few on our copies too. Asks cuDNN for little else, so this is
  /// fast.
  virtual std::vector<KernelOffer> firstOffers(cudnnHandle_t,
                                               const Problem&,
                                               std::size_t /*limitBytes*/,
                                               std::size_t /*most*/,
                                               Calls,
                                               int* /*failures*/) const {
    return {};
  }
  /// Prepares one of the offered kernels, or one that was offered for another problem. Asks nothing
  /// yet. REQUIRES: the descriptors have the problem's values (engines need none); the handle
  /// outlives what is prepared, not what is built.
  virtual std::unique_ptr<PreparedKernel> prepare(
      cudnnHandle_t handle,
      const Problem& problem,
      std::shared_ptr<const ProblemDescriptors> descriptors,
      Kernel kernel) const = 0;

  /// Kernels that differ from this one in only one of its choices, one list for each choice. Not
  /// all of them exist. Asks on the host.
  virtual std::vector<std::vector<Kernel>> variants(cudnnHandle_t, const Problem&, Kernel) const {
    return {};
  }
  /// A number that kernels share if they differ only in such choices.
  virtual std::int32_t kind(Kernel kernel) const { return kernel.id; }

  /// The kernel's name in the database and in the log. No other source's kernel has this text.
  virtual std::string text(Operation operation, Kernel kernel) const = 0;
  /// The reverse: a kernel that the problem may have, with what is known of it without asking
  /// cuDNN.
  virtual std::optional<KernelOffer> parse(const Problem& problem, std::string_view text) const = 0;
};

/// Adds a source behind cuDNN's algorithms. REQUIRES: nothing has been planned yet.
void addKernelSource(std::unique_ptr<const KernelSource> source);

/// Whether a source may offer kernels for the problem. The source of engines.hpp may only
/// `withEngines`. With engines, the source of planes.hpp may only if engines of blocks are no
/// faster.
bool isAsked(std::int32_t source, const Problem& problem, bool withEngines) noexcept;
/// Whether plans may have the kernel for the problem: for a large one only if the kernel divides
/// it. If no kernel divides it, the client's own engine runs it undivided.
bool mayBePlanned(const Problem& problem, Kernel kernel);
/// Whether an erratum may be why the kernel is not offered on the current device.
bool mayBeBarred(const Problem& problem, Kernel kernel);
/// The functions below ask every source that may be asked, and put its place into what it returns.
std::vector<KernelOffer> offeredKernels(cudnnHandle_t handle,
                                        const Problem& problem,
                                        const ConvolutionDescriptors& descriptors,
                                        bool withEngines,
                                        int* failures = nullptr,
                                        Calls calls = Calls::kAll);
std::optional<KernelOffer> offeredInBands(cudnnHandle_t handle,
                                          const Problem& problem,
                                          const OfferBounds& bounds,
                                          int* failures = nullptr);
std::optional<KernelOffer> offeredFirst(cudnnHandle_t handle,
                                        const Problem& problem,
                                        const OfferBounds& bounds,
                                        bool orNext,
                                        int* failures = nullptr);
bool copiesTensors(const Problem& problem, Kernel kernel, std::size_t workspaceBytes);
std::size_t copiedBytes(const Problem& problem, Kernel kernel);
std::size_t outputCopyBytes(const Problem& problem, Kernel kernel);
std::vector<KernelOffer> firstOffers(cudnnHandle_t handle,
                                     const Problem& problem,
                                     std::size_t limitBytes,
                                     std::size_t most,
                                     Calls calls,
                                     int* failures = nullptr);
std::optional<KernelOffer> offeredKernel(cudnnHandle_t handle,
                                         const Problem& problem,
                                         std::shared_ptr<const ProblemDescriptors> descriptors,
                                         Kernel kernel,
                                         int* failures = nullptr,
                                         Calls calls = Calls::kAll);
std::shared_ptr<const BuiltKernel> buildKernel(
    cudnnHandle_t handle,
    const Problem& problem,
    std::shared_ptr<const ProblemDescriptors> descriptors,
    Kernel kernel,
    Calls calls = Calls::kAll);
std::vector<std::vector<Kernel>> variantsOf(cudnnHandle_t handle,
                                            const Problem& problem,
                                            Kernel kernel);
/// A value that a kernel shares with its variants, and with the variants of those.
Kernel kindOf(Kernel kernel);
std::string toText(Operation operation, Kernel kernel);
std::optional<KernelOffer> parseKernel(const Problem& problem, std::string_view text);

/// Kernels of a problem at its batch sizes, each prepared and built once, and the ranking by
/// cuDNN's heuristics for the problem itself. REQUIRES: the handle outlives it. Not thread-safe.
class PreparedKernels {
 public:
  PreparedKernels(cudnnHandle_t handle, const Problem& problem)
      : handle_(handle), problem_(problem) {}

  const Problem& problem() const noexcept { return problem_; }

  /// As offeredKernel and buildKernel. Both throw Error.
  std::optional<KernelOffer> offer(int batch, Kernel kernel, Calls calls, int* failures);
  std::shared_ptr<const BuiltKernel> build(int batch, Kernel kernel, Calls calls);
  /// KernelSource::offerOnCopies. Throws Error.
  std::optional<KernelOffer> offerOnCopies(int batch,
                                           std::optional<Kernel> own,
                                           const OfferBounds& bounds);
  /// rankedAlgorithms at the problem's own batch size. Throws Error.
  const std::vector<KernelOffer>& ranked();

 private:
  struct Place {
    std::unique_ptr<PreparedKernel> prepared;
    std::map<Calls, std::shared_ptr<const BuiltKernel>> built;
  };
  Place& placeOf(int batch, Kernel kernel);
  const std::shared_ptr<const ProblemDescriptors>& descriptorsOf(int batch);

  const cudnnHandle_t handle_;
  const Problem problem_;
  std::map<int, std::shared_ptr<const ProblemDescriptors>> descriptors_;
  std::map<std::pair<int, Kernel>, Place> places_;
  std::optional<std::vector<KernelOffer>> ranked_;
};

}  // namespace ucudnn
