"""What a run writes down: every key of every record, and reading a run back."""
