"""Similarity rank disclosure (SRD): bits that the rank of the true speaker gives away."""
