UPDATE size SET batch = batch + 2147483648;
