UPDATE measurement SET kernel = replace(kernel, '/fma', '/default');
