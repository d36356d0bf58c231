"""The codec whose first codebook is made private: data, training, evaluation."""
