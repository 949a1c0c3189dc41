#include "simulator/cudnn/gemm.hpp"

#include <algorithm>
#include <cstddef>

namespace ucudnn::simulator {
namespace {

// Rows of C that one tile holds in registers beside one panel: 4 x 8 doubles fill half of AVX2's
// registers.
constexpr int kTileRows = 4;

template <int kRows>
[[gnu::always_inline]] inline void tile(
    int columns, int depth, const double* a, int lda, const double* panel, double* c, int ldc) {
  double sum[kRows][kPanelColumns] = {};
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < columns; ++column) sum[row][column] = c[row * ldc + column];
  }
  for (int k = 0; k < depth; ++k, panel += kPanelColumns) {
    for (int row = 0; row < kRows; ++row) {
      const double factor = a[row * lda + k];
      for (int column = 0; column < kPanelColumns; ++column) {
        sum[row][column] += factor * panel[column];
      }
    }
  }
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < columns; ++column) c[row * ldc + column] = sum[row][column];
  }
}

[[gnu::always_inline]] inline void allTiles(int rows,
                                            int columns,
                                            int depth,
                                            const double* a,
                                            int lda,
                                            const double* panels,
                                            double* c,
                                            int ldc) {
  for (int first = 0; first < columns; first += kPanelColumns) {
    const double* panel = panels + static_cast<std::ptrdiff_t>(first) * depth;
    const int width = std::min(kPanelColumns, columns - first);
    int row = 0;
    for (; row + kTileRows <= rows; row += kTileRows) {
      tile<kTileRows>(width,
                      depth,
                      a + static_cast<std::ptrdiff_t>(row) * lda,
                      lda,
                      panel,
                      c + static_cast<std::ptrdiff_t>(row) * ldc + first,
                      ldc);
    }
    for (; row < rows; ++row) {
      tile<1>(width,
              depth,
              a + static_cast<std::ptrdiff_t>(row) * lda,
              lda,
              panel,
              c + static_cast<std::ptrdiff_t>(row) * ldc + first,
              ldc);
    }
  }
}

#if defined(__x86_64__)
// Compiled with -ffp-contract=off: the same bits as the portable version, only wider registers.
[[gnu::target("avx2")]] void allTilesAvx2(int rows,
                                          int columns,
                                          int depth,
                                          const double* a,
                                          int lda,
                                          const double* panels,
                                          double* c,
                                          int ldc) {
  allTiles(rows, columns, depth, a, lda, panels, c, ldc);
}
#endif

}  // namespace

void multiplyAdd(int rows,
                 int columns,
                 int depth,
                 const double* a,
                 int lda,
                 const double* panels,
                 double* c,
                 int ldc) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    return allTilesAvx2(rows, columns, depth, a, lda, panels, c, ldc);
  }
#endif
  allTiles(rows, columns, depth, a, lda, panels, c, ldc);
}

}  // namespace ucudnn::simulator
