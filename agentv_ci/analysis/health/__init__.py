"""What a ledger says of cases, and of those who answer and judge them."""
