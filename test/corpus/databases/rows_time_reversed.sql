UPDATE measurement SET time_ms = 1 / (time_ms + 0.001) + 0.01;
