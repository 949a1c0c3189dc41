// Which kernels are worth timing at a batch size, given what was measured at others. Plain rules
// over numbers.
#pragma once

#include <vector>

#include "benchmark/measurement.hpp"

namespace ucudnn {

/// The kernel's time at the largest smaller size where it was measured, scaled up. Else its time at
/// the smallest larger size, scaled down, but only if that is short: fewer samples may take a long
/// kernel longer. 0: no measurement gives an expected time.
double expectedMs(const Measurements& measured, Kernel kernel, int batch);

/// The most time that the kernel's times at other sizes let expect at `batch`: fewer samples take
/// no longer, and more take as much for each at most. Infinite if it was measured at no other size.
double mostExpectedMs(const Measurements& measured, Kernel kernel, int batch);

/// False if repeating another kernel at a smaller size needs no more workspace, and no more time
/// than this kernel took at that size alone. A kernel does not get faster with more samples, so it
/// is in no plan at `batch`.
bool isWorthTrying(const Measurements& measured, const KernelOffer& offer, int batch);

/// Fast tuning's rule, in which sizes are measured from a middle one down, and then up. False if
/// the kernel would be off the front even at its time per sample at the nearest size where it was
/// measured (with more samples, kFasterAtLargerBatches less), or if it is hopeless there. True if
/// it was measured nowhere. Sizes smaller than the middle one say nothing of larger ones. `isRest`:
/// the size may be left over beside larger ones, where less workspace is no use.
bool mayJoinFront(
    const Measurements& measured, const KernelOffer& offer, int batch, int middle, bool isRest);

/// Fast tuning: whether the kernel took `factor` times as long for a sample as another that needs
/// at most half the limit. Then no plan within half the limit or more has it, except for the rest
/// of a batch; within less, plans are looked for anew (KnownQuestion::answersClosely). For fewer
/// samples, only kernels count that were timed with no more samples. False if it was measured
/// nowhere.
bool isFarBehind(const Measurements& measured,
                 KernelOffer offer,
                 int batch,
                 int middle,
                 std::size_t limitBytes,
                 double factor);

/// Whether no plan wants more samples of the kernel: it took very long at the two largest smaller
/// sizes where it was measured, and others take much less time in more workspace.
bool isHopeless(const Measurements& measured, Kernel kernel, int batch);

/// Whether some kernel at some measured size beats this one by `factor` in time per sample, in no
/// more workspace, as deterministically and as accurately, enqueued as well as replayed. Then this
/// one makes no plan better, whatever the limit. `batch` samples take `timing`.
bool isOffFront(const Measurements& measured,
                int batch,
                KernelTiming timing,
                const KernelOffer& offer,
                double factor);

/// The least time that the kernel may take at `batch`. It follows from its time per sample at the
/// next measured sizes below and above, and from the line through its times at the two sizes below.
/// Infinite if it was measured at neither neighbour.
KernelTiming hopedFor(const Measurements& measured, Kernel kernel, int batch);

/// Fast tuning: keeps the most hopeful of the kernels at one size, which all fit. A kernel is kept
/// unless several others that could take its place have shorter hoped-for times. Less workspace is
/// no merit here. `enginesAlone`: an algorithm can't take an engine's place.
void keepMostHopeful(std::vector<Measurement>& hopes, bool enginesAlone);

/// The kernels that were measured at the next size below or above.
std::vector<Kernel> neighbouringKernels(const Measurements& measured, int batch);

/// Whether the kernel was measured at `miniBatch` and needs no more workspace there than this
/// offer. Then, whatever the limit, the kernel runs undivided if it runs at all, and a part of the
/// batch gains nothing.
bool needsNoSplit(const Measurements& measured, const KernelOffer& offer, int miniBatch);

}  // namespace ucudnn
