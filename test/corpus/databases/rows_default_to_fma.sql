UPDATE measurement SET kernel = replace(kernel, '/default', '/fma');
