"""What rows mean: outcomes, statistics, the gate, comparisons."""
