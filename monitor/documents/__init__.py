"""Documents to read: one HTML file each, without scripts, fonts or anything to fetch."""
