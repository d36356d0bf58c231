"""What an experiment is made of: heard speech, or scores that somebody made of it."""
