"""What all parts use."""
