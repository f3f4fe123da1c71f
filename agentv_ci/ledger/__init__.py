"""The ledger: results of many runs, in a branch of git or a folder."""
