INSERT OR REPLACE INTO measurement SELECT size.id, column1, 0.01, 0, 1, 0.01, 0 FROM size JOIN (VALUES
  ('IMPLICIT_GEMM/fma'), ('IMPLICIT_PRECOMP_GEMM/fma'), ('GEMM/fma'), ('DIRECT/fma'), ('FFT/fma'), ('FFT_TILING/fma'),
  ('WINOGRAD/fma'), ('WINOGRAD_NONFUSED/fma'), ('ALGO_0/fma'), ('ALGO_1/fma'), ('ALGO_3/fma'),
  ('IMPLICIT_GEMM/default'), ('IMPLICIT_PRECOMP_GEMM/default'), ('GEMM/default'), ('DIRECT/default'), ('FFT/default'),
  ('FFT_TILING/default'), ('WINOGRAD/default'), ('WINOGRAD_NONFUSED/default'), ('ALGO_0/default'), ('ALGO_1/default'),
  ('ALGO_3/default'));
