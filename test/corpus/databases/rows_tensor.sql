UPDATE measurement SET kernel = substr(kernel, 1, instr(kernel || '/', '/')) || 'tensor_conversion';
