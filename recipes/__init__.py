"""Recipes of the shipped networks: data, training and evaluation, in one folder per network."""
