"""How the networks that ship were made: data, training, evaluation, one folder a network."""
