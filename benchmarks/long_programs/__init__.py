"""Programs as long as one likes, in every format and of many shapes: what ``benchmarks/lint_speed.py`` measures."""
