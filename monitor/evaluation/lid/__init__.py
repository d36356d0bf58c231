"""Local information disclosure (LID): bits that each trial gives a calibrated attacker."""
