"""Files of other tools → eval files, targets, and a report of what became of each construct."""
