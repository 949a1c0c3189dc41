// Which kernels are worth timing at a batch size, given what was measured at others. Plain rules
// over numbers.
#pragma once

#include <vector>

#include "benchmark/measurement.hpp"

namespace ucudnn {

/// What the kernel took at the largest smaller size where it was measured, scaled up. Or else at
/// the smallest larger one, scaled down, if that is short: fewer samples may take a long kernel
/// longer. 0: nothing leads to expect a time.
double expectedMs(const Measurements& measured, Kernel kernel, int batch);

/// False when repeating another kernel at a smaller size needs neither more workspace nor more time
/// than this one took at that size alone: a kernel does not get faster with more samples, so it is
/// in no plan at `batch`.
bool isWorthTrying(const Measurements& measured, const KernelOffer& offer, int batch);

/// Fast tuning's rule, where sizes are measured from a middle one down, and then up: false when the
/// kernel would be off the front even if it took as little time for a sample as at the nearest size
/// where it was measured, or, with more samples, kFasterAtLargerBatches less; or is hopeless there.
/// True where it was measured nowhere. Smaller sizes than the middle one say nothing of larger
/// ones. `isRest`: the size may be left over beside larger ones, where less workspace is no use.
bool mayJoinFront(
    const Measurements& measured, const KernelOffer& offer, int batch, int middle, bool isRest);

/// Fast tuning: whether the kernel took `factor` times as long for a sample as another that needs
/// at most half the limit. Then no plan within half the limit or more has it, except for what is
/// left of a batch; within less, plans are looked for anew (KnownQuestion::looksClosely). About
/// fewer samples only those others count that were timed with no more than it. False where it was
/// measured nowhere.
bool isFarBehind(const Measurements& measured,
                 KernelOffer offer,
                 int batch,
                 int middle,
                 std::size_t limitBytes,
                 double factor);

/// Fast tuning: whether the kernel was timed with more samples, and needs no more than so much
/// there: then no plan within that or more wants fewer of it.
bool fitsWithMore(const Measurements& measured,
                  Kernel kernel,
                  int batch,
                  std::size_t workspaceBytes);

/// Fast tuning: whether the whole mini-batch needs no more than so much workspace, and for a sample
/// no more time than fewer samples than `batch`: then `batch` samples gain nothing.
bool isNoFasterThanWhole(const Measurements& measured,
                         Kernel kernel,
                         int batch,
                         int miniBatch,
                         std::size_t workspaceBytes);

/// Whether the kernel took so long at the two largest smaller sizes where it was measured, and
/// others take so much less in more workspace, that no plan wants more samples of it.
bool isHopeless(const Measurements& measured, Kernel kernel, int batch);

/// Whether some kernel at some measured size beats this by `factor` in time per sample, in no more
/// workspace, as deterministically and as accurately: then no plan is better for having it,
/// whatever the limit; enqueued as well as replayed. `batch` samples take `timing`.
bool isOffFront(const Measurements& measured,
                int batch,
                KernelTiming timing,
                const KernelOffer& offer,
                double factor);

/// The least that the kernel may take at `batch`, judged by its time per sample at the next
/// measured sizes below and above, and by the line through its times at the two sizes below;
/// infinite where it was measured at neither neighbour.
KernelTiming hopedFor(const Measurements& measured, Kernel kernel, int batch);

/// Fast tuning, of kernels at one size that all fit, with the times that are hoped for: keeps those
/// that few others are hoped to beat which could take their place. Workspace is no merit then.
/// `enginesAlone`: an algorithm can't take an engine's.
void keepMostHopeful(std::vector<Measurement>& hopes, bool enginesAlone);

/// The kernels that were measured at the next size below or above.
std::vector<Kernel> neighbouringKernels(const Measurements& measured, int batch);

/// Whether the kernel needs as much workspace at `miniBatch`, where it was measured, as it is
/// offered for: whatever the limit, it then runs undivided wherever it runs at all, and a part of
/// the batch gains nothing.
bool needsNoSplit(const Measurements& measured, const KernelOffer& offer, int miniBatch);

}  // namespace ucudnn
