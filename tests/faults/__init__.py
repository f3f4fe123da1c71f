"""Faults around a run, of the network, the disk and the clock: the rows are still right."""
