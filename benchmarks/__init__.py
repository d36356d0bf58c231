"""What the pages say was measured: `python -m benchmarks` lists what there is to run."""
