"""Attribute privacy: whether a voice tells its speaker's gender, age group or accent.

VoxGuard section 3.2: an attacker learns the attribute from the embeddings of some readers and is
judged on others.
"""
