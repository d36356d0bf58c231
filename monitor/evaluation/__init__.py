"""The metrics of the papers on a matrix of trials x speakers; every figure with its uncertainty."""
