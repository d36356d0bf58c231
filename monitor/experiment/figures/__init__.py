"""SRD's figures 4 to 8 of a corpus, each as SVG, PNG and CSV."""
