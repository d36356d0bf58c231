"""Recipe of the codec with a private first codebook: data, training and evaluation."""
