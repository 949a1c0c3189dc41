UPDATE problem SET text = text || hex(zeroblob(20000));
