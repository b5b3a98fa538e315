"""Load records into the state of a coordinator of a chosen release."""
