"""One cell: who scores what at one length of test and template, and what that discloses."""
