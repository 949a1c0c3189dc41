UPDATE OR REPLACE measurement SET kernel = 'FFT/fma' || hex(zeroblob(15000));
