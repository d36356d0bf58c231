"""Adapting: the voice network fine-tuned on the speech of other people, for a stronger attacker."""
