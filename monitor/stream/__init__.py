"""The running monitor."""
