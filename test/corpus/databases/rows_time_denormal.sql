UPDATE measurement SET time_ms = 4.9e-324;
