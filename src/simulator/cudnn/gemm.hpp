// C += A * B in double with one fixed order of summation: the heart of every simulated convolution.
#pragma once

namespace ucudnn::simulator {

/// Columns of B come in panels this wide: two AVX-512 or four SSE2 registers hold one row of a
/// panel.
constexpr int kPanelColumns = 8;

/// Adds A (rows x depth, row stride lda) times B to C (rows x columns, row stride ldc). B is stored
/// as ceil(columns / kPanelColumns) panels, each depth x kPanelColumns without gaps; columns that
/// pad the last panel are read but change nothing. Each element of C is summed in order of
/// increasing depth index, so that blocking rows or columns changes no bit.
void multiplyAdd(int rows,
                 int columns,
                 int depth,
                 const double* a,
                 int lda,
                 const double* panels,
                 double* c,
                 int ldc);

}  // namespace ucudnn::simulator
