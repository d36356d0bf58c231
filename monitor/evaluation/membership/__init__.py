"""Membership inference: true positives at low false positive rates, and epsilon from them."""
