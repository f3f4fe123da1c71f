"""Everything around a run breaks: the network, children, the disk, the clock. The rows are right all the same."""
