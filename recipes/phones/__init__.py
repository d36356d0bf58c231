"""The phone recogniser whose hidden units are counted."""
