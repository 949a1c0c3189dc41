UPDATE measurement SET kernel = 'X' || kernel WHERE kernel LIKE 'FFT/%';
UPDATE OR REPLACE measurement SET kernel = replace(kernel, 'GEMM', 'FFT');
