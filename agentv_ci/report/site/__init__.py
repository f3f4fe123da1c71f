"""The pages of a ledger: what every case did, run after run."""
