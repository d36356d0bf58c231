"""Every plot of the package; matplotlib is imported only when one is drawn."""
