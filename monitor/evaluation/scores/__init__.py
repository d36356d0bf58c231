"""What is evaluated: score matrices, lists of comparisons, and the counts and resamples of them."""
