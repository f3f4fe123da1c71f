"""The pages of a ledger."""
