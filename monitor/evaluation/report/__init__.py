"""Reports of one system or several: figures chosen, compared, worded, exported and drawn."""
