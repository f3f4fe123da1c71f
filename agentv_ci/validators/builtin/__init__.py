"""The built-in run validators, one file each."""
