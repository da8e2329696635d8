const second = 2;
