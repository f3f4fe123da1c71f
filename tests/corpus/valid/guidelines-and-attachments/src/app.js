let app = 1;
