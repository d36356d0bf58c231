"""What several trials of one speaker disclose together, against their number."""
