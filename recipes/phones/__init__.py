"""Recipe of the phone recogniser, and of the units that the feature ``phones`` counts."""
