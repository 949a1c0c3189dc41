UPDATE measurement SET time_ms = 9e999;
