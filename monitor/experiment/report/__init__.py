"""What is written of an experiment: tables, a page, and everything as JSON."""
