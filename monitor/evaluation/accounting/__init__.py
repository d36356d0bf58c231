"""What a declared epsilon amounts to over several trials."""
