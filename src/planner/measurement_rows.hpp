// Measurements as rows of the database. Only times and errors are taken from rows, and only those
// that hardware could have. Everything that cuDNN can tell is asked of cuDNN (confirmation.hpp).
#pragma once

#include "benchmark/measurement.hpp"
#include "cache/database.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// Whether a kernel of the problem could have this error: no less than the rounding of its output.
bool isPossibleError(const Problem& problem, double error) noexcept;

/// Converts the rows of a problem. Leaves out rows that can't be true of any GPU, today's or
/// tomorrow's: a wrong refusal would measure for ever, a wrong acceptance only makes a slow plan.
/// Workspace and support are unconfirmed. Determinism, accuracy and the math type follow from
/// kernel and problem alone, whatever the rows say. `refused`, if not null, counts the kernels that
/// were left out.
Measurements fromStored(const Problem& problem,
                        const StoredMeasurements& stored,
                        int* refused = nullptr);

/// The reverse.
StoredMeasurements toStored(const Problem& problem, const Measurements& measurements);

}  // namespace ucudnn
