"""What speech there is, and whose."""
