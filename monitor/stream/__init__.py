"""Follows one stream: sums what is heard of a voice, and makes a reading of it every second."""
