"""What providers that are agents share: programs, the files they read, the events they print."""
