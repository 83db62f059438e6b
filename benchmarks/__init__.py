"""Speed of filtax beside its peers and beside what the machine can do; `python -m benchmarks` runs all of it."""
